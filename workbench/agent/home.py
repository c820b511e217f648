"""The home: a fork that holds a cell's names and runs its statements, in order, once."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from workbench.agent import streams
from workbench.agent.channels import Channels
from workbench.agent.lease import Lease
from workbench.agent.shell import HomeShell
from workbench.agent.threads import thread_environment, use_cores
from workbench.boundary import Arrival, CellError, unpack
from workbench.graphs.cell import COROUTINE, Cell, Statement, parse_source
from workbench.protocol.job_files import RESULT_NAME, CellSpec, read_spec

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
        spec = read_spec(directory)
        threads = thread_environment(self.own_threads, lease.cores)
        os.environ.update(threads)
        use_cores(int(threads["OMP_NUM_THREADS"]))
        gc.enable()
        report = _run_cell(self.shell, spec, directory)
        os.write(channels.report.write, json.dumps(report).encode())
        return 0


def _run_cell(shell: HomeShell, spec: CellSpec, directory: Path) -> dict[str, Any]:
    namespace: dict[str, Any] = shell.user_ns
    me = os.getpid()
    arrival: Arrival | None = None
    error: BaseException | None = None
    before: dict[str, Any] = {}
    environment: dict[str, str | None] = {}
    try:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            arrival = unpack(directory, namespace)
            before = dict(namespace)
            environment = {name: os.environ.get(name) for name in spec.env}
            os.environ.update(spec.env)
            cell = _parse(shell, spec)
            _run_statements(shell, cell)
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    except BaseException as raised:  # noqa: BLE001  (whatever the user's code raises is its result)
        error = raised
    if os.getpid() != me:
        os._exit(1)  # A fork that the cell made and let run on to here must not answer for it.
    # SIGINT stays blocked from here on: the result is written, an interrupt must not tear it.
    shown = None if error is None else _show_error(shell, error, spec.filename)
    _flush_open_files()
    if arrival is None:
        return _failed(error)
    _take_back(spec.env, environment)
    names = [name for name, value in namespace.items() if before.get(name, before) is not value]
    deleted = [name for name in before if name not in namespace]
    arrival.pack_back(directory, names=names, deleted=deleted, error=shown)
    return {"outcome": "done", "detail": ""} if error is None else _failed(error)


def _parse(shell: HomeShell, spec: CellSpec) -> Cell:
    cell = parse_source(
        spec.source, raw=spec.raw, first_line=spec.first_line, filename=spec.filename
    )
    shell.know_source(cell, spec.execution_count, spec.head)
    return cell


def _run_statements(shell: HomeShell, cell: Cell) -> None:
    """Run the cell to its end: every statement in this process, in program order.

    A plan that has tasks to run beside one another takes this place.
    """
    shell.events.trigger("pre_execute")
    try:
        # With a top-level await the whole cell runs inside one loop, as it does in a kernel.
        if cell.is_async:
            with contextlib.closing(asyncio.new_event_loop()) as loop:
                asyncio.set_event_loop(loop)
                loop.run_until_complete(_run_async(shell, cell))
        else:
            for index, statement in enumerate(cell.statements):
                value = eval(_code(cell, statement), shell.user_ns)  # noqa: S307  (the user's cell)
                _finish(shell, cell, index, value)
    finally:
        shell.events.trigger("post_execute")  # Figures that are still open are shown here.


async def _run_async(shell: HomeShell, cell: Cell) -> None:
    for index, statement in enumerate(cell.statements):
        code = _code(cell, statement)
        value = eval(code, shell.user_ns)  # noqa: S307  (the user's cell)
        if code.co_flags & COROUTINE:
            value = await value
        _finish(shell, cell, index, value)


def _code(cell: Cell, statement: Statement) -> Any:
    if statement.last_expr:
        return cell.compile(statement.node.value, "eval")  # type: ignore[attr-defined]
    return cell.compile(statement.node)


def _finish(shell: HomeShell, cell: Cell, index: int, value: Any) -> None:
    statement = cell.statements[index]
    if statement.last_expr and value is not None:
        shell.displayhook(value)
        shell.user_ns[RESULT_NAME] = value
    what = f"line {statement.lineno}"
    shell.append("progress", done=index + 1, total=len(cell.statements), what=what)


def _show_error(shell: HomeShell, error: BaseException, filename: str) -> CellError:
    lines = shell.render(error, filename)
    shell.append("error", etype=type(error).__name__, text=_text(error), traceback=lines)
    return CellError(exception=error, traceback_lines=lines)


def _take_back(ours: Mapping[str, str], before: Mapping[str, str | None]) -> None:
    """Undo what we added to the environment, so that it does not count as the cell's change."""
    for name, value in ours.items():
        if os.environ.get(name) == value:
            os.environ.pop(name)
            if (old := before.get(name)) is not None:
                os.environ[name] = old


def _failed(error: BaseException | None) -> dict[str, Any]:
    detail = f"{type(error).__name__}: {_text(error)}" if _text(error) else type(error).__name__
    return {"outcome": "failed", "detail": detail[:DETAIL_LIMIT]}


def _text(error: BaseException | None) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001  (the user's own __str__)
        return f"<its text cannot be made: {type(broken).__name__}>"


def _flush_open_files() -> None:
    """Write out what the cell left in files that it did not close; the process ends abruptly."""
    for file in gc.get_objects():
        if isinstance(file, io.BufferedWriter | io.TextIOWrapper) and not file.closed:
            with contextlib.suppress(OSError, ValueError):
                file.flush()
