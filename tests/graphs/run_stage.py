"""Plays shim, home and workers for one cell after another, each in a fresh fork of its own.

`python -m tests.graphs.run_stage` reads cases on stdin and writes what became of them on stdout,
a JSON object a line. Each case runs twice: in order in one namespace, and as a plan.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import linecache
import os
import re
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from workbench.engines.gate import Gate
from workbench.engines.local import fork_cpu_workers, start_gpu_workers
from workbench.graphs import dask_edge, run_remote
from workbench.graphs.cell import Cell, parse_source
from workbench.graphs.executable import executable
from workbench.graphs.plan import make_plan
from workbench.graphs.run import PlanRun
from workbench.graphs.run_files import RunFiles
from workbench.graphs.run_parts import Workers
from workbench.protocol.job_files import CellSpec, write_spec
from workbench.protocol.plan import NodeKind, Plan

FILENAME = "<ipython-input-1-cell>"
SETUP = "<ipython-input-0-setup>"


def main() -> None:
    dask_edge.prepare()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "only one thread may fork"
    for line in sys.stdin:
        case = json.loads(line)
        in_order = _in_fork(lambda: _run(case, _in_order))  # noqa: B023  (called at once)
        planned = _in_fork(lambda: _as_shim(case))  # noqa: B023  (as above)
        print(json.dumps({"in_order": in_order, "planned": planned}), flush=True)


def _in_fork(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        try:
            result = call()
        except BaseException:  # noqa: BLE001  (the test sees it)
            result = {"stage_failed": traceback.format_exc()}
        with os.fdopen(write, "w") as file:
            json.dump(result, file)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    _, status = os.waitpid(pid, 0)
    return json.loads(text) if text else {"died": os.waitstatus_to_exitcode(status)}


def _as_shim(case: dict[str, Any]) -> dict[str, Any]:
    """Start the workers, be the home, and see that every worker ends."""
    job = Path(tempfile.mkdtemp(prefix="wbrun"))
    crews = _start_crews(case, job)
    try:
        result = _run(
            case, lambda cell, namespace, say: _planned(case, job, crews, cell, namespace, say)
        )
        killed = sum(_end(pid) for gate in crews.values() for pid in gate.pids)
        logs = {path.name: path.read_text() for path in job.glob("dask/*.log")}
        return result | {"killed": killed, "logs": logs}
    finally:
        shutil.rmtree(job)


def _end(pid: int) -> bool:
    """End a worker, as the shim does when its home is gone; True where it was killed before."""
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        return os.WIFSIGNALED(status)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def _start_crews(case: dict[str, Any], job: Path) -> dict[bool, Gate]:
    enter = functools.partial(_enter, os.getpid())
    crews = {}
    if count := case.get("workers", 2):
        work = functools.partial(_work, case, RunFiles(job))
        crews[False] = fork_cpu_workers(count, job, enter=enter, work=work)
    if uuids := case.get("gpus"):
        crews[True] = start_gpu_workers(uuids, job, enter=enter)
    for gate in crews.values():
        gate.keep_home_side()
    return crews


def _enter(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert os.getppid() == parent


def _work(case: dict[str, Any], files: RunFiles, name: str) -> None:
    compute = run_remote.compute

    def compute_or_die(*arguments: Any) -> run_remote.Outcome:
        attempt = files.running(name).read_text()
        if attempt in case.get("kill", ()):
            os.kill(os.getpid(), signal.SIGKILL)
        part = attempt.rpartition("-")[0]
        if part in case.get("kill_once", ()):
            with contextlib.suppress(FileExistsError):
                (files.directory / f"killed-{part}").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return compute(*arguments)

    run_remote.compute = compute_or_die
    dask_edge.serve(files, name)


def _run(case: dict[str, Any], run: Callable[..., list[str]]) -> dict[str, Any]:
    """Run setup and cell, and describe everything that can be seen afterwards."""
    work = tempfile.mkdtemp(prefix="wbcell")
    os.chdir(work)
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    warnings.resetwarnings()
    namespace: dict[str, Any] = {"__name__": "__main__", "TMP": "."}
    vars(sys.modules["__main__"]).update(__name__="__main__")
    lines: list[dict[str, Any]] = []

    def say(kind: str, **fields: Any) -> None:
        lines.append({"kind": kind, **fields})
        if kind == "committed" and case.get("interrupt_after") == fields["index"]:
            os.kill(os.getpid(), signal.SIGINT)

    setup = case.get("setup", "")
    linecache.cache[SETUP] = (len(setup), None, setup.splitlines(keepends=True), SETUP)
    exec(compile(setup, SETUP, "exec", dont_inherit=True), namespace)
    cell = parse_source(case["cell"], raw=case["cell"], first_line=2, filename=FILENAME)
    error: BaseException | None = None
    shown: list[Any] = []
    try:
        shown = run(cell, namespace, say)
    except BaseException as raised:  # noqa: BLE001  (whatever the cell raised)
        error = raised
    probe = None
    if "probe" in case:
        probe = repr(eval(case["probe"], namespace))
    names = {
        name: _describe(value) for name, value in namespace.items() if not name.startswith("__")
    }
    files = {str(path): path.read_text() for path in Path().rglob("*") if path.is_file()}
    shutil.rmtree(work)
    return {
        "names": names,
        "probe": probe,
        "shown": [repr(one) for one in shown],
        "stdout": sys.stdout.getvalue(),
        "stderr": sys.stderr.getvalue(),
        "files": files,
        "error": None if error is None else _error(error),
        "lines": lines,
    }


def _describe(value: Any) -> str:
    if isinstance(value, type):
        return f"class {value.__qualname__}"
    if callable(value):
        return f"callable {getattr(value, '__name__', type(value).__name__)}"
    return f"{type(value).__qualname__} {_without_addresses(repr(value))}"


def _without_addresses(text: str) -> str:
    return re.sub(" at 0x[0-9a-f]+", "", text)


def _error(error: BaseException) -> dict[str, Any]:
    chain = []
    one: BaseException | None = error
    while one is not None:
        frames = [
            [frame.name, frame.lineno]
            for frame in traceback.extract_tb(one.__traceback__)
            if frame.filename in {FILENAME, SETUP}
        ]
        chain.append(
            {"type": type(one).__name__, "text": _without_addresses(str(one)), "frames": frames}
        )
        one = one.__cause__ or one.__context__
    return {"chain": chain}


def _in_order(cell: Cell, namespace: dict[str, Any], _: Callable[..., None]) -> list[Any]:
    return _loop(cell, namespace, iter(range(len(cell.statements))), [])


def _planned(
    case: dict[str, Any],
    job: Path,
    crews: dict[bool, Gate],
    cell: Cell,
    namespace: dict[str, Any],
    say: Callable[..., None],
) -> list[Any]:
    plan = make_plan(cell, namespace, split="auto", cores_available=2)
    if "moved" in case:
        plan = _with_moved(plan, cell, case["moved"])
    spec = CellSpec(
        protocol=1,
        job="0" * 32,
        session="s",
        source=case["cell"],
        raw=case["cell"],
        filename=FILENAME,
        first_line=2,
        execution_count=1,
        plan=msgspec.to_builtins(plan),
    )
    write_spec(job, spec)
    for node in plan.nodes:
        say("node", id=node.id, node=node.kind.value, inline=node.inline)
    shown: list[Any] = []

    def committed(index: int, value: Any) -> None:
        say("committed", index=index)
        if cell.statements[index].last_expr and value is not None:
            shown.append(value)

    files = RunFiles(job)
    pool = dask_edge.Pool(files, crews)
    pool.start()
    pool.wait_ready()
    uses_gpu = set(case.get("uses_gpu", ())).__contains__
    workers = Workers(files=files, crews=crews, pool=pool, uses_gpu=uses_gpu)
    run = PlanRun(executable(plan, cell), namespace, workers=workers, committed=committed, say=say)
    try:
        return _loop(cell, namespace, run.steps(), shown)
    finally:
        pool.close()
        pool.join()


def _with_moved(plan: Plan, cell: Cell, moved: dict[str, str]) -> Plan:
    """Return a plan in which these statements move and no others, whatever was proven."""
    nodes = [msgspec.structs.replace(one, kind=NodeKind.BARRIER) for one in plan.nodes]
    for index, kind in moved.items():
        names = cell.names.statements[int(index)]
        nodes[int(index)] = msgspec.structs.replace(
            nodes[int(index)],
            kind=NodeKind(kind),
            inline=False,
            reads=tuple(sorted(names.reads)),
            writes=tuple(sorted(names.writes)),
        )
    edges = tuple(edge for edge in plan.edges if str(edge.target) not in moved)
    return msgspec.structs.replace(plan, nodes=tuple(nodes), edges=edges)


def _loop(
    cell: Cell, namespace: dict[str, Any], steps: Iterator[int], shown: list[Any]
) -> list[Any]:
    for index in steps:
        statement = cell.statements[index]
        if statement.last_expr:
            value = eval(cell.compile(statement.node.value, "eval"), namespace)
            if value is not None:
                shown.append(value)
        else:
            exec(cell.compile(statement.node), namespace)
    return shown


if __name__ == "__main__":
    main()
