"""One scheduled cell: text → plan → job → result bound in the notebook."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from workbench.advice import Advice, advise
from workbench.advice.looks import module_of
from workbench.boundary import BrokenTransfer, Crossing, attributes_in
from workbench.client import Background, Job, JobFailed, KernelSession, Staged, jobs_directory
from workbench.client.job import bind
from workbench.client.publish import NotReturned, Publisher
from workbench.frontends.magics.detached import Detached
from workbench.frontends.magics.following import Following
from workbench.frontends.magics.groups import show_as_rendered
from workbench.frontends.magics.left_out import Sent, explained, notes, pack_what_can_go
from workbench.frontends.magics.options import Options
from workbench.frontends.magics.status_line import StatusLine, units_text
from workbench.graphs.cell import FUTURES, Cell, parse_cell
from workbench.graphs.errors import CellRefused
from workbench.graphs.plan import Plan, make_plan
from workbench.graphs.screening import shell_call
from workbench.graphs.show import plan_text
from workbench.protocol.job_files import LAST_VALUE, OUTPUT, CellSpec, write_spec
from workbench.protocol.messages import PROTOCOL, JobView, LeaseEnding, RequestSpec, Status

RESERVE_BYTES: Final = 512 * 2**20
"""Disk and memory that no input may take: a full disk would stop every job."""

HISTORY: Final = frozenset({"hist", "history", "recall", "rep", "rerun"})
"""Magics on earlier cells, of which a cell's home knows none."""

SHELL_NAMES: Final = frozenset(
    {"In", "Out", "exit", "quit", "get_ipython", "open", "_ih", "_oh", "_dh"}
)
"""Names that IPython keeps for itself in the namespace; the home has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A cell that was read, analysed and placed; nothing was packed or queued yet."""

    cell: Cell
    head: str
    plan: Plan
    advice: Advice
    request: RequestSpec
    memory_free_bytes: float | None
    gpus_here: int | None


class Scheduling:
    """What the magics of one shell share: the session, its connections, detached jobs.

    Args:
        shell: The kernel's IPython shell.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.background = Background()
        self.session = KernelSession(self._modules)
        self.detached = Detached(shell)
        self.last_job: str | None = None

    def prepare(self, options: Options, body: str, *, head: str, filename: str) -> Prepared:
        """Read, analyse and place a cell. Nothing is queued, whatever happens.

        Raises:
            SyntaxError: With the user's own line.
            UserError: The cell does what a scheduled cell cannot do.
            PeerError: Controller or agent cannot be reached.
        """
        try:
            cell = parse_cell(
                body,
                transform=self.shell.transform_cell,
                first_line=head.count("\n") + 1,
                filename=filename,
                future_flags=self.shell.compile.flags & FUTURES,
            )
        except SyntaxError as error:
            # Of `return` outside a function and the like the compiler has no text.
            lines = (head + body).splitlines()
            error.text = error.text or (lines[error.lineno - 1] if error.lineno else None)
            raise
        refuse_own_magics(cell)
        status = self.background.run(self.session.prepare())
        plan = make_plan(
            cell, self.shell.user_ns, split=options.split, cores_available=_host_cores(status)
        )
        advice = advise(cell.tree, self.shell.user_ns, status.sample, device=options.device)
        request = _request(options, plan, advice, status)
        free = status.sample.host.memory_available_bytes.value if status.sample else None
        return Prepared(
            cell=cell,
            head=head,
            plan=plan,
            advice=advice,
            request=request,
            memory_free_bytes=free,
            gpus_here=len(status.sample.devices) if status.sample else None,
        )

    async def status(self) -> Status:
        """Return the lab now."""
        return await (await self.session.controller()).status()

    def pack(self, prepared: Prepared) -> tuple[Staged, Sent]:
        """Write the job directory: inputs and specification.

        Raises:
            CannotCross: A name that the cell reads cannot leave the kernel.
        """
        cell = prepared.cell
        sent = pack_what_can_go(
            self.shell.user_ns,
            sorted(name for name in cell.names.reads if name in self.shell.user_ns),
            self._other_names() if cell.names.opaque else [],
            limit_bytes=room_bytes(prepared.memory_free_bytes),
            attributes=attributes_in(cell.tree),
        )
        _tell(notes(sent.left_out, cell.names.opaque or ""))
        _tell(sent.crossing.notes)
        staged = self.session.new_job()
        try:
            sent.crossing.write(staged.directory)
            spec = CellSpec(
                protocol=PROTOCOL,
                job=staged.job,
                session=self.session.id,
                source=cell.source,
                raw=cell.raw,
                head=prepared.head,
                filename=cell.filename,
                first_line=cell.first_line,
                execution_count=running_number(self.shell),
                plan=msgspec.to_builtins(prepared.plan),
                future_flags=cell.future_flags,
            )
            write_spec(staged.directory, spec)
        except BaseException:
            staged.remove()
            raise
        return staged, sent

    def submit(self, prepared: Prepared, staged: Staged, options: Options) -> None:
        """Queue a packed cell; on an error its directory is gone."""
        self.background.run(
            self.session.submit(
                staged,
                prepared.request,
                name=options.name or f"In[{running_number(self.shell)}]",
                notebook=os.environ.get("JPY_SESSION_NAME"),
                detach=options.detach,
            )
        )
        self.last_job = staged.job

    def job(self, job: str, crossing: Crossing | None = None) -> Job:
        """Return the `Job` of an id, whose result binds names in this notebook."""
        return Job(
            job,
            session=self.session,
            background=self.background,
            namespace=self.shell.user_ns,
            shell=self.shell,
            crossing=crossing,
            on_bound=self.detached.bound,
            on_error=functools.partial(show_as_rendered, self.shell),
        )

    def see_through(self, prepared: Prepared, staged: Staged, sent: Sent) -> Any:
        """Follow a queued cell to its end, bind what it bound, and return its last value.

        Raises:
            BaseException: What the cell raised, with its own traceback.
            JobFailed: It ended without a result.
            BrokenTransfer: The result cannot be bound here; it is kept.
        """
        line = StatusLine(_folded(prepared.plan))
        publisher = Publisher(self.shell, staged.directory / OUTPUT)
        job = self.job(staged.job, sent.crossing)
        following = Following(
            staged.job,
            staged.directory,
            session=self.session,
            background=self.background,
            publisher=publisher,
            line=line,
        )
        try:
            ending = following.run()
        except BaseException:
            job.abandon()
            line.end("interrupted, and not waited for")
            raise
        self.shell.compile.flags |= prepared.cell.future_flags
        know_source(self.shell, prepared)
        try:
            return self._bind(job, publisher, sent, was_interrupted=following.was_interrupted)
        finally:
            line.end(last_words(ending, following.view))
            publisher.flush()

    def _bind(
        self,
        job: Job,
        publisher: Publisher,
        sent: Sent,
        *,
        was_interrupted: bool,
    ) -> Any:
        try:
            changes = job.changes()
            sentences = bind(changes, self.shell.user_ns)
        except JobFailed:
            job.drop_data()
            if was_interrupted:
                raise KeyboardInterrupt from None
            raise
        except BrokenTransfer as broken:
            raise _kept(broken, job) from broken
        job.drop_data()
        _tell(one for one in sentences if one not in sent.crossing.notes)
        value = self.shell.user_ns.pop(LAST_VALUE, None)
        if (failure := job.failure(changes)) is not None:
            raise failure
        if changes.error is not None:
            error = explained(changes.error, sent.left_out).as_exception()
            show_as_rendered(self.shell, error)
            raise error
        if (reason := changes.not_returned.get(LAST_VALUE)) is not None:
            return NotReturned(reason, publisher.result)
        return value

    def _other_names(self) -> list[str]:
        """Return the notebook's names, without those that IPython put there."""
        hidden = self.shell.user_ns_hidden
        return sorted(
            name
            for name, value in self.shell.user_ns.items()
            if name not in SHELL_NAMES
            and not name.startswith("_")
            and hidden.get(name, _MISSING) is not value
        )

    def _modules(self) -> list[str]:
        return imported_modules(self.shell.user_ns)


_MISSING: Final = object()


def know_source(shell: Any, prepared: Prepared) -> None:
    """Have tracebacks through what the cell defined show its lines, as those of any cell."""
    cell = prepared.cell
    shell.compile._filename_map[cell.filename] = running_number(shell)  # noqa: SLF001  (no other way)
    above = prepared.head.splitlines(keepends=True)
    above += ["\n"] * (cell.first_line - 1 - len(above))
    lines = above + cell.raw.splitlines(keepends=True)
    linecache.cache[cell.filename] = (len(cell.raw), None, lines, cell.filename)


def running_number(shell: Any) -> int:
    """Return n of the `In[n]` that runs; `execution_count` is the next one's already."""
    return len(shell.history_manager.input_hist_parsed) - 1


def _folded(plan: Plan) -> str:
    """Return what the status line folds away: nothing where the plan says nothing new."""
    is_news = plan.width > 1 or len(plan.nodes) > 1 or plan.left_behind
    return plan_text(plan) if is_news else ""


def _kept(broken: BrokenTransfer, job: Job) -> BrokenTransfer:
    """Return the error of a result that could not be bound, and how to get at it."""
    again = f"`import workbench; workbench.job({job.id[:8]!r}).result()`"
    kept = (
        f"The result is kept in {job.directory}: {again} tries again, with the code that was sent"
    )
    return BrokenTransfer(
        broken.message, next_step=f"{broken.next_step}. {kept}" if broken.next_step else kept
    )


def room_bytes(memory_free_bytes: float | None) -> int:
    """Return how much may cross to a home: what disk and memory can hold, with a reserve.

    Inputs lie in the job directory and are mapped into the home, so they need both.
    """
    disk = shutil.disk_usage(jobs_directory()).free
    free = disk if memory_free_bytes is None else min(disk, int(memory_free_bytes))
    return max(free - RESERVE_BYTES, 0)


def _tell(notes: Iterable[str]) -> None:
    for note in notes:
        sys.stderr.write(f"gpu-schedule: {note}\n")


def imported_modules(namespace: Mapping[str, Any]) -> list[str]:
    """Return the modules that a notebook's names come from: what a warm process should import."""
    found: set[str] = set()
    for value in list(namespace.values()):
        found |= {module_of(value), module_of(type(value))}
    return sorted(name for name in found if name in sys.modules and name != "__main__")


def _host_cores(status: Status) -> int:
    cores = status.sample.host.cores_usable.value if status.sample else None
    return int(cores or os.cpu_count() or 1)


def default_cores(plan_width: int, gpus: int, status: Status) -> int:
    """Return the cores a cell gets where the user named none.

    The width of the plan; at least the host's cores ÷ GPUs for a GPU job and 2 else; at most what
    is free and half the host, but never below 2 for want of a larger host.
    """
    host = _host_cores(status)
    devices = len(status.sample.devices) if status.sample else 0
    least = max(1, host // max(devices, 1)) if gpus else 2
    used = sum(view.cores for view in status.jobs if view.state != "queued")
    most = min(max(host - used, 1), max(host // 2, 2))
    return max(1, min(max(plan_width, least), most, host))


def _request(options: Options, plan: Plan, advice: Advice, status: Status) -> RequestSpec:
    gpus = options.gpus if options.gpus is not None else advice.gpus
    cores = options.cpus or default_cores(plan.width, gpus, status)
    return options.request(gpus=gpus, cores=cores)


def last_words(ending: LeaseEnding, view: JobView | None) -> str:
    """Return how a cell ended, and on what: nowhere where it never ran."""
    ran = view is not None and view.started_unix_s is not None
    place = f" on {units_text(view)}" if view is not None and ran else ""
    if ending.outcome == "done":
        return f"ran{place}"
    return f"{ending.outcome}{place}" + (f": {ending.detail}" if ending.detail else "")


def refuse_own_magics(cell: Cell) -> None:
    """Refuse `%gpu-jobs`, `%hist` and the like in a cell: its home is no notebook.

    Raises:
        CellRefused: Names the line and the magic.
    """
    for node in ast.walk(cell.tree):
        call = shell_call(node)
        if call is None or call[0] not in {"run_line_magic", "run_cell_magic"} or not call[1]:
            continue
        magic = call[1][0].lstrip("%")
        if magic.startswith("gpu-") or magic in HISTORY:
            raise CellRefused(
                f"line {getattr(node, 'lineno', '?')}: %{magic} works in the notebook, not inside "
                "a scheduled cell",
                next_step=f"Run %{magic} in a cell of its own",
            )


def whole_cell(shell: Any, line: str, body: str) -> tuple[str, str]:
    """Return the whole cell as the user typed it, and its lines above the body."""
    code = ""
    if hasattr(shell, "get_parent"):
        code = str(shell.get_parent().get("content", {}).get("code", ""))
    head = code.rstrip().removesuffix(body.rstrip())
    if len(head) < len(code.rstrip()) and head.lstrip("\n").startswith("%%"):
        return code, head
    head = f"%%gpu-schedule {line}\n"
    return head + body, head
