"""The home: a fork that holds a cell's names and runs its statements, in order, once."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from os import _exit, getpid, strerror
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from workbench.advice.workload import ALWAYS_GPU, GPU_LIBRARIES, workload
from workbench.agent import streams
from workbench.agent.channels import Channels
from workbench.agent.crews import plan_width
from workbench.agent.interrupts import Interrupts
from workbench.agent.lease import Lease
from workbench.agent.leftovers import ExitLimit, Leftovers, wait_for_tasks
from workbench.agent.own_library import OwnLibrary
from workbench.agent.shell import HomeShell
from workbench.agent.threads import thread_environment, use_cores
from workbench.boundary import Arrival, CellError, unpack
from workbench.engines.gate import Gate
from workbench.engines.local import cpu_worker_count, threads_each
from workbench.graphs.cell import COROUTINE, Cell, Statement, parse_spec
from workbench.graphs.run_failures import first_in
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
            interrupts=Interrupts(),
        )
        _run_cell(scene, channels.report)
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
        interrupts: SIGINT and SIGTERM, held back.
    """

    shell: HomeShell
    spec: CellSpec
    directory: Path
    lease: Lease
    crews: Mapping[bool, Gate]
    pool: Pool | None
    interrupts: Interrupts


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


def _run_cell(scene: Scene, report: Callable[..., None]) -> None:
    """Run the cell, write its result, report, and then do what is done at a program's exit."""
    namespace: dict[str, Any] = scene.shell.user_ns
    me = getpid()
    arrival: Arrival | None = None
    error: BaseException | None = None
    before: dict[str, Any] = {}
    leftovers = Leftovers()
    library = OwnLibrary()
    try:
        try:
            scene.interrupts.let_through()
            arrival = unpack(scene.directory, namespace)
            before = dict(namespace)
            cell = _parse(scene.shell, scene.spec)
            _run_statements(scene, cell)
            if getpid() == me:
                with library.in_force():
                    leftovers.wait()
        finally:
            scene.interrupts.hold_back()
    except BaseException as raised:  # noqa: BLE001  (whatever the user's code raises is its result)
        error = raised
    if getpid() != me:
        _exit(1)  # A fork that the cell made and let run on to here must not answer for it.
    # Interrupts stay held back from here on: the result is written, and none must tear it.
    with library.in_force():
        shown = None if error is None else _show_error(scene.shell, error, scene.spec.filename)
        ending = _ending(error, is_stopped=scene.interrupts.is_stopped)
        if arrival is not None:
            ending = _pack_back(scene, arrival, before, shown) or ending
        limit = ExitLimit(partial(_exit, 0))
    report(**ending)
    # After the result is safe: the user's own code runs once more, and may be interrupted.
    with contextlib.suppress(KeyboardInterrupt):
        scene.interrupts.let_through()
        leftovers.run_exit_functions()
    with library.in_force(), contextlib.suppress(KeyboardInterrupt):
        leftovers.end()
    limit.over()


def _pack_back(
    scene: Scene, arrival: Arrival, before: Mapping[str, Any], shown: CellError | None
) -> dict[str, str] | None:
    """Write the result; return how the job ended where that is impossible."""
    now = scene.shell.user_ns
    names = [name for name, value in now.items() if before.get(name, before) is not value]
    deleted = [name for name in before if name not in now]
    try:
        arrival.pack_back(scene.directory, names=names, deleted=deleted, error=shown)
    except OSError as error:
        why = strerror(error.errno) if error.errno else str(error)
        return {"outcome": "failed", "detail": f"its result cannot be written: {why}"}
    return None


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
        with _closing(asyncio.new_event_loop()) as loop:
            asyncio.set_event_loop(loop)
            context = contextvars.copy_context()
            task = loop.create_task(_run_in_loop(scene, cell, steps), context=context)
            try:
                error = _run_until_complete(loop, task)
            finally:
                _keep(context)
        if error is not None:
            raise error
    finally:
        if scene.pool is not None:
            scene.pool.close()
        shell.events.trigger("post_execute")  # Figures that are still open are shown here.


def _run_until_complete(
    loop: asyncio.AbstractEventLoop, task: asyncio.Task[BaseException | None]
) -> BaseException | None:
    try:
        return loop.run_until_complete(task)
    except OSError:  # The cell has closed the loop's descriptors, and may have needed no loop.
        if not task.done():
            raise
        return task.result()


@contextlib.contextmanager
def _closing(loop: asyncio.AbstractEventLoop) -> Iterator[asyncio.AbstractEventLoop]:
    try:
        yield loop
    finally:
        with contextlib.suppress(OSError):  # The cell has closed its descriptors.
            loop.close()


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
            uses_gpu=partial(_uses_gpu, scene, cell),
        ),
        committed=partial(_finish, scene.shell, cell),
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


async def _run_in_loop(scene: Scene, cell: Cell, steps: Iterator[int]) -> BaseException | None:
    """Run the statements; return what one raised, which must not pass through our coroutines.

    A loop takes some exceptions for its own, and a coroutine lets no StopIteration out.
    """
    shell = scene.shell
    try:
        for index in steps:
            if scene.interrupts.is_stopped:  # The cell has caught it.
                raise KeyboardInterrupt  # noqa: TRY301
            began = time()
            code = _code(cell, cell.statements[index])
            value = eval(code, shell.user_ns)  # noqa: S307  (the user's cell)
            if code.co_flags & COROUTINE:
                value = await value
            _place(shell, cell, index, began)
            _finish(shell, cell, index, value)
        await wait_for_tasks()
    except BaseException as error:  # noqa: BLE001  (whatever the user's code raises is its result)
        return _as_raised(error, cell.filename)
    return None


def _as_raised(error: BaseException, filename: str) -> BaseException:
    """Return what a task raised, where the generator of our own steps let no StopIteration out."""
    is_hidden = (
        isinstance(error, RuntimeError)
        and isinstance(error.__cause__, StopIteration)
        and first_in(error.__traceback__, filename) is None
        and str(error) == "generator raised StopIteration"
    )
    return error.__cause__ or error if is_hidden else error


def _place(shell: HomeShell, cell: Cell, index: int, began_unix_s: float) -> None:
    shell.append(
        "place",
        what=f"line {cell.statements[index].lineno}",
        where="home",
        start_unix_s=began_unix_s,
        end_unix_s=time(),
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


def _ending(error: BaseException | None, *, is_stopped: bool) -> dict[str, str]:
    if error is None:
        return {"outcome": "done", "detail": ""}
    if is_stopped and isinstance(error, KeyboardInterrupt):
        return {"outcome": "killed", "detail": "killed (SIGTERM)"}
    detail = f"{type(error).__name__}: {_text(error)}" if _text(error) else type(error).__name__
    return {"outcome": "failed", "detail": detail[:DETAIL_LIMIT]}


def _text(error: BaseException | None) -> str:
    try:
        return plain(str(error))
    except Exception as broken:  # noqa: BLE001  (the user's own __str__)
        return f"<its text cannot be made: {type(broken).__name__}>"
