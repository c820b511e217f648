"""One scheduled cell: text → plan → job → result bound in the notebook."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import msgspec

from workbench.advice import Advice, advise
from workbench.boundary import Crossing, pack
from workbench.client import Background, Job, JobFailed, KernelSession, Staged
from workbench.frontends.magics.detached import Detached
from workbench.frontends.magics.following import Following
from workbench.frontends.magics.options import Options
from workbench.frontends.magics.publish import Publisher
from workbench.frontends.magics.status_line import StatusLine, units_text
from workbench.graphs.cell import Cell, parse_cell
from workbench.graphs.plan import Plan, make_plan
from workbench.graphs.show import plan_text
from workbench.protocol.job_files import OUTPUT, RESULT_NAME, CellSpec, write_spec
from workbench.protocol.messages import PROTOCOL, LeaseEnding, RequestSpec, Status
from workbench.transport.paths import jobs_directory

RESERVE_BYTES: Final = 512 * 2**20
"""Disk and memory that no input may take: a full disk would stop every job."""

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
        cell = parse_cell(
            body,
            transform=self.shell.transform_cell,
            first_line=head.count("\n") + 1,
            filename=filename,
        )
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
        )

    async def status(self) -> Status:
        """Return the lab now."""
        return await (await self.session.controller()).status()

    def pack(self, prepared: Prepared, options: Options) -> tuple[Staged, Crossing]:
        """Write the job directory: inputs and specification.

        Raises:
            CannotCross: A name that the cell reads cannot leave the kernel.
        """
        names = self._names_read(prepared.cell)
        crossing = pack(
            self.shell.user_ns, names, limit_bytes=room_bytes(prepared.memory_free_bytes)
        )
        _tell(crossing.notes)
        staged = self.session.new_job()
        try:
            crossing.write(staged.directory)
            cell = prepared.cell
            spec = CellSpec(
                protocol=PROTOCOL,
                job=staged.job,
                session=self.session.id,
                source=cell.source,
                raw=cell.raw,
                head=prepared.head,
                filename=cell.filename,
                first_line=cell.first_line,
                execution_count=self.shell.execution_count,
                split=options.split,
                plan=msgspec.to_builtins(prepared.plan),
            )
            write_spec(staged.directory, spec)
        except BaseException:
            staged.remove()
            raise
        return staged, crossing

    def submit(self, prepared: Prepared, staged: Staged, options: Options) -> None:
        """Queue a packed cell; on an error its directory is gone."""
        self.background.run(
            self.session.submit(
                staged,
                prepared.request,
                name=options.name or f"In[{self.shell.execution_count}]",
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
            crossing=crossing,
            on_bound=self.detached.bound,
        )

    def see_through(self, prepared: Prepared, staged: Staged, crossing: Crossing) -> Any:
        """Follow a queued cell to its end, bind what it bound, and return its last value.

        Raises:
            BaseException: What the cell raised, with its own traceback.
            JobFailed: It ended without a result.
        """
        line = StatusLine(plan_text(prepared.plan) if len(prepared.plan.nodes) > 1 else "")
        publisher = Publisher(self.shell, staged.directory / OUTPUT)
        following = Following(
            staged.job,
            session=self.session,
            background=self.background,
            publisher=publisher,
            line=line,
        )
        ending = following.run()
        job = self.job(staged.job, crossing)
        try:
            return self._bind(job, publisher, was_interrupted=following.was_interrupted)
        finally:
            where = units_text(following.view) if following.view else ""
            line.show(_last_words(ending, where))
            publisher.flush()
            job.drop_data()

    def _bind(self, job: Job, publisher: Publisher, *, was_interrupted: bool) -> Any:
        try:
            changes = job.changes()
        except JobFailed:
            if was_interrupted:
                raise KeyboardInterrupt from None
            raise
        changes.commit(self.shell.user_ns)
        value = self.shell.user_ns.pop(RESULT_NAME, None)
        if changes.error is not None:
            raise changes.error.as_exception()
        _tell(changes.notes)
        for name, reason in changes.not_returned.items():
            if name != RESULT_NAME:
                sys.stderr.write(f"gpu-schedule: {name} could not come back: {reason}\n")
        if value is None:
            publisher.publish_result()
        return value

    def _names_read(self, cell: Cell) -> list[str]:
        namespace = self.shell.user_ns
        if cell.names.opaque is None:
            return sorted(name for name in cell.names.reads if name in namespace)
        hidden = self.shell.user_ns_hidden
        return sorted(
            name
            for name, value in namespace.items()
            if name not in SHELL_NAMES
            and not name.startswith("_")
            and hidden.get(name, _MISSING) is not value
        )

    def _modules(self) -> list[str]:
        return imported_modules(self.shell.user_ns)


_MISSING: Final = object()


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
        name = value.__name__ if isinstance(value, ModuleType) else type(value).__module__
        origin = getattr(value, "__module__", None)
        found.update(one for one in (name, origin) if isinstance(one, str))
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


def _last_words(ending: LeaseEnding, where: str) -> str:
    place = f" on {where}" if where else ""
    if ending.outcome == "done":
        return f"ran{place}"
    return f"{ending.outcome}{place}" + (f": {ending.detail}" if ending.detail else "")


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
