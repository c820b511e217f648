"""The home: a fork that holds a cell's names and runs its statements, in order, once."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import gc
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from workbench.advice.workload import ALWAYS_GPU, GPU_LIBRARIES, workload
from workbench.agent import streams
from workbench.agent.channels import Channels
from workbench.agent.crews import plan_width
from workbench.agent.lease import Lease
from workbench.agent.leftovers import Leftovers, wait_for_tasks
from workbench.agent.shell import HomeShell
from workbench.agent.threads import thread_environment, use_cores
from workbench.boundary import Arrival, CellError, unpack
from workbench.engines.gate import Gate
from workbench.engines.local import cpu_worker_count, threads_each
from workbench.graphs.cell import COROUTINE, Cell, Statement, parse_spec
from workbench.graphs.run_files import RunFiles
from workbench.protocol.job_files import LAST_VALUE, CellSpec, read_spec
from workbench.protocol.plan import Plan
from workbench.protocol.text import plain

if TYPE_CHECKING:
    from workbench.graphs.dask_edge import Pool

DETAIL_LIMIT: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What a zygote keeps ready for its homes.

    Attributes:
        shell: The process's shell.
        own_threads: The thread counts that the user has set, by variable.
    """

    shell: HomeShell
    own_threads: Mapping[str, str]

    def run(self, directory: Path, lease: Lease, channels: Channels) -> int:
        """Run the cell in `directory` and leave its result there.

        Returns:
            The process's exit code: 0 also where the cell raised, for that is a result.
        """
        streams.install(channels)
        self.shell.connect(channels)
        pool = _start_pool(directory, channels.crews)
        spec = read_spec(directory)
        threads = thread_environment(self.own_threads, lease.cores)
        os.environ.update(threads)
        use_cores(int(threads["OMP_NUM_THREADS"]))
        gc.enable()
        scene = Scene(
            shell=self.shell,
            spec=spec,
            directory=directory,
            lease=lease,
            crews=channels.crews,
            pool=pool,
        )
        report = _run_cell(scene)
        os.write(channels.report.write, json.dumps(report).encode())
        return 0

    def work(self, directory: Path, lease: Lease, name: str) -> None:
        """Be a worker without a GPU, until the job's scheduler is gone."""
        from workbench.graphs.dask_edge import serve

        workers = cpu_worker_count(plan_width(directory), lease.cores)
        threads = thread_environment(self.own_threads, threads_each(workers, lease.cores))
        os.environ.update(threads)
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        if (count := int(threads["OMP_NUM_THREADS"])) > 1:  # The zygote has one.
            use_cores(count)
        gc.enable()
        serve(RunFiles(directory), name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A job in its home.

    Attributes:
        shell: The process's shell.
        spec: What is run.
        directory: The job's.
        lease: What was granted.
        crews: The workers that were started beside it, by whether they have a GPU.
        pool: Their scheduler; None where there are none.
    """

    shell: HomeShell
    spec: CellSpec
    directory: Path
    lease: Lease
    crews: Mapping[bool, Gate]
    pool: Pool | None


def _start_pool(directory: Path, crews: Mapping[bool, Gate]) -> Pool | None:
    """Start the scheduler, while the home loads its inputs.

    SIGINT is still held back, so that it will always find the main thread.
    """
    if not crews:
        return None
    from workbench.graphs.dask_edge import Pool

    pool = Pool(RunFiles(directory), crews)
    pool.start()
    return pool


def _run_cell(scene: Scene) -> dict[str, Any]:
    shell, spec, directory = scene.shell, scene.spec, scene.directory
    namespace: dict[str, Any] = shell.user_ns
    me = os.getpid()
    arrival: Arrival | None = None
    error: BaseException | None = None
    before: dict[str, Any] = {}
    leftovers = Leftovers()
    try:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            arrival = unpack(directory, namespace)
            before = dict(namespace)
            cell = _parse(shell, spec)
            _run_statements(scene, cell)
            if os.getpid() == me:
                leftovers.wait()
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    except BaseException as raised:  # noqa: BLE001  (whatever the user's code raises is its result)
        error = raised
    if os.getpid() != me:
        os._exit(1)  # A fork that the cell made and let run on to here must not answer for it.
    # SIGINT stays blocked from here on: the result is written, an interrupt must not tear it.
    shown = None if error is None else _show_error(shell, error, spec.filename)
    if arrival is None:
        return _failed(error)
    names = [name for name, value in namespace.items() if before.get(name, before) is not value]
    deleted = [name for name in before if name not in namespace]
    arrival.pack_back(directory, names=names, deleted=deleted, error=shown)
    # After the result is safe: the user's own code runs once more, and may be interrupted.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with contextlib.suppress(KeyboardInterrupt):
        leftovers.end()
    return {"outcome": "done", "detail": ""} if error is None else _failed(error)


def _parse(shell: HomeShell, spec: CellSpec) -> Cell:
    cell = parse_spec(spec)
    shell.know_source(cell, spec.execution_count, spec.head)
    return cell


def _run_statements(scene: Scene, cell: Cell) -> None:
    """Run the cell to its end: what the plan does not move in this process, in program order.

    The whole cell runs inside one running loop, as it does in a kernel.
    """
    shell = scene.shell
    shell.events.trigger("pre_execute")
    try:
        steps = _steps(scene, cell)
        with contextlib.closing(asyncio.new_event_loop()) as loop:
            asyncio.set_event_loop(loop)
            context = contextvars.copy_context()
            task = loop.create_task(_run_in_loop(shell, cell, steps), context=context)
            try:
                loop.run_until_complete(task)
            finally:
                _keep(context)
    finally:
        if scene.pool is not None:
            scene.pool.close()
        shell.events.trigger("post_execute")  # Figures that are still open are shown here.


def _keep(context: contextvars.Context) -> None:
    """Take over what the cell set for its context, numpy's error handling for one."""
    for variable, value in context.items():
        if variable.get(None) is not value:
            variable.set(value)


def _steps(scene: Scene, cell: Cell) -> Iterator[int]:
    """Return the statements to run here; others run on workers meanwhile, where there are any."""
    if scene.pool is None:
        return iter(range(len(cell.statements)))
    from workbench.graphs.executable import executable
    from workbench.graphs.run import PlanRun
    from workbench.graphs.run_parts import Workers

    try:
        scene.pool.wait_ready()  # Until then Dask's settings are ours; the cell may use Dask too.
    except Exception as error:  # noqa: BLE001  (whatever it is, the cell can run in order)
        what = f"in order, since Dask's scheduler did not start: {error}"
        scene.shell.append("progress", done=0, total=len(cell.statements), what=what)
        return iter(range(len(cell.statements)))
    run = PlanRun(
        executable(msgspec.convert(scene.spec.plan, Plan), cell),
        scene.shell.user_ns,
        workers=Workers(
            files=RunFiles(scene.directory),
            crews=scene.crews,
            pool=scene.pool,
            uses_gpu=functools.partial(_uses_gpu, scene, cell),
        ),
        committed=functools.partial(_finish, scene.shell, cell),
        say=scene.shell.append,
    )
    return run.steps()


def _uses_gpu(scene: Scene, cell: Cell, index: int) -> bool:
    """Whether a statement is for a GPU: one was leased, and the code asks for a device."""
    if not scene.lease.real_gpus:
        return False
    found = workload(cell.statements[index].node, scene.shell.user_ns)
    can = found.libraries & set(GPU_LIBRARIES)
    return bool(can & ALWAYS_GPU) or (bool(can) and found.asks_for_device)


async def _run_in_loop(shell: HomeShell, cell: Cell, steps: Iterator[int]) -> None:
    for index in steps:
        began = time.time()
        code = _code(cell, cell.statements[index])
        value = eval(code, shell.user_ns)  # noqa: S307  (the user's cell)
        if code.co_flags & COROUTINE:
            value = await value
        _place(shell, cell, index, began)
        _finish(shell, cell, index, value)
    await wait_for_tasks()


def _place(shell: HomeShell, cell: Cell, index: int, began_unix_s: float) -> None:
    shell.append(
        "place",
        what=f"line {cell.statements[index].lineno}",
        where="home",
        start_unix_s=began_unix_s,
        end_unix_s=time.time(),
    )


def _code(cell: Cell, statement: Statement) -> Any:
    if statement.last_expr:
        return cell.compile(statement.node.value, "eval")  # type: ignore[attr-defined]
    return cell.compile(statement.node)


def _finish(shell: HomeShell, cell: Cell, index: int, value: Any) -> None:
    statement = cell.statements[index]
    if statement.last_expr and value is not None:
        shell.displayhook(value)
        shell.user_ns[LAST_VALUE] = value
    what = f"line {statement.lineno}"
    shell.append("progress", done=index + 1, total=len(cell.statements), what=what)


def _show_error(shell: HomeShell, error: BaseException, filename: str) -> CellError:
    lines = shell.render(error, filename)
    shell.append("error", etype=type(error).__name__, text=_text(error), traceback=lines)
    return CellError(exception=error, traceback_lines=lines)


def _failed(error: BaseException | None) -> dict[str, Any]:
    detail = f"{type(error).__name__}: {_text(error)}" if _text(error) else type(error).__name__
    return {"outcome": "failed", "detail": detail[:DETAIL_LIMIT]}


def _text(error: BaseException | None) -> str:
    try:
        return plain(str(error))
    except Exception as broken:  # noqa: BLE001  (the user's own __str__)
        return f"<its text cannot be made: {type(broken).__name__}>"
