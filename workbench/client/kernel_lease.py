"""A kernel's lease: asked for before Jupyter starts it, kept over restarts, given back at its end.

The kernel provisioner, in the Jupyter server's process, and `%gpu-lease`, in a running kernel, use
the same calls. Each opens connections of its own and closes them: a lease lasts as long as its
kernel, no connection does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workbench.client.agent import AgentClient
from workbench.client.controller import ControllerClient
from workbench.client.environment import leased_environment, own_environment
from workbench.client.session import find_job
from workbench.client.stopped import resume
from workbench.core.errors import NeverFits, UserError, WorkbenchError
from workbench.protocol.messages import Advanced, JobOver, JobView, RequestSpec, Status
from workbench.protocol.quantities import format_seconds
from workbench.transport.errors import ConnectionLost

TICKET_S: Final = 600.0
"""A request that was not granted in time waits on for so long, and so does what it is granted."""

_MARGIN_S: Final = 10.0
"""Beyond its wait a ticket that is not kept lasts for so long, where its asker was killed."""
_ATTEMPTS: Final = 5
_PAUSE_S: Final = 0.2
_START_TICKS: Final = 19
"""Position after the command in /proc/PID/stat. Source: proc_pid_stat(5)."""


class NotGranted(UserError):
    """The units are not free yet; the message says whether the ticket keeps its place in line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a kernel asks for.

    Attributes:
        name: What the queue calls it. With `notebook` it also finds a ticket again.
        notebook: Path of the notebook, where there is one.
        cores: None for the host's cores ÷ GPUs, as far as they are free, at most half the host.
        wait_s: How long to wait for a grant.
        keeps_ticket: Whether a request that was not granted in time waits on for `TICKET_S`, to be
            taken up by the next start of the same kernel. A kernel that runs already needs what it
            holds for its own scheduled cells, too: its request ends with the wait.
    """

    name: str
    notebook: str | None = None
    gpus: int = 1
    cores: int | None = None
    gpu_memory_bytes: int | None = None
    time_limit_s: float | None = None
    wait_s: float = 20.0
    keeps_ticket: bool = True

    @property
    def ticket_s(self) -> float:
        """How long the ticket lasts where nobody takes it up or out of the queue."""
        return TICKET_S if self.keeps_ticket else self.wait_s + _MARGIN_S

    def request(self, status: Status) -> RequestSpec:
        """Return the request, with cores that suit the lab as it is now."""
        return RequestSpec(
            kind="kernel",
            gpus=self.gpus,
            cores=self.cores or _default_cores(status, self.gpus),
            gpu_memory_bytes=self.gpu_memory_bytes,
            time_limit_s=self.time_limit_s,
            wait_limit_s=self.ticket_s,
        )

    def is_asked_by(self, view: JobView) -> bool:
        """Whether this live job is a ticket for the same thing."""
        return (
            view.mine
            and view.kind == "kernel"
            and (view.name, view.notebook) == (self.name, self.notebook)
            and (view.request.gpus, view.request.gpu_memory_bytes, view.request.time_limit_s)
            == (self.gpus, self.gpu_memory_bytes, self.time_limit_s)
            and (self.cores is None or view.request.cores == self.cores)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLease:
    """Units that a kernel may use.

    Attributes:
        job: The kernel job's id.
        environment: What to set in the kernel's environment.
    """

    job: str
    environment: Mapping[str, str]


async def take(wanted: Wanted, env: Mapping[str, str]) -> KernelLease:
    """Ask for a lease, or take up a ticket of before, and wait until it is granted.

    The kernel must be named with `started` within a minute.

    Args:
        wanted: What is asked for.
        env: The kernel's environment without a lease.

    Raises:
        NotGranted: It was not granted in time.
        NeverFits: This host has no such units; nothing was queued.
        PeerError: Controller or agent cannot be reached.
    """
    tried: set[str] = set()
    resume()
    async with _controller() as controller, _agent() as agent:
        deadline = asyncio.get_running_loop().time() + wanted.wait_s
        while True:
            status = await controller.status()
            job = next(
                (
                    view.id
                    for view in status.jobs
                    if wanted.is_asked_by(view) and view.id not in tried
                ),
                None,
            )
            job = job or await _submit(controller, agent, wanted, status)
            tried.add(job)
            try:
                await _until_ready(controller, agent, job, deadline, wanted)
            except BaseException:  # An interrupt, too.
                if not wanted.keeps_ticket:
                    await _drop(controller, agent, job)
                raise
            try:
                environment = await agent.take_kernel(job, own_environment(env))
            except UserError:
                # A kernel has it: one that runs, or one that came before us for the same ticket.
                if len(tried) >= _ATTEMPTS + len(status.jobs):
                    raise
                continue
            return KernelLease(job=job, environment=leased_environment(environment, env))


async def take_again(job: str, env: Mapping[str, str]) -> KernelLease:
    """Keep a lease while its kernel is started again; within a minute, or it is given back.

    Raises:
        UserError: The lease is over.
        PeerError: The agent cannot be reached.
    """
    async with _agent() as agent:
        environment = await agent.take_kernel(job, own_environment(env), again=True)
    return KernelLease(job=job, environment=leased_environment(environment, env))


async def started(job: str, pid: int) -> None:
    """Say which process is the kernel; the lease ends with it.

    Raises:
        UserError: The lease is over, or there is no such process.
        PeerError: The agent cannot be reached.
    """
    start_ticks = _start_ticks(pid)
    async with _agent() as agent:
        await agent.kernel_started(job, pid, start_ticks)


async def give_back(job: str) -> None:
    """Give the lease back; whoever the ended kernel left behind is ended.

    Raises:
        PeerError: The agent cannot be reached; it sees by itself when the kernel is gone.
    """
    async with _agent() as agent:
        await agent.give_back(job)


async def why_stopped(job: str) -> str | None:
    """Return why the controller ended this lease; None where it did not.

    Raises:
        PeerError: The controller cannot be reached.
    """
    async with _controller() as controller:
        view = find_job(await controller.status(), job)
    if view is None or view.outcome not in {"cancelled", "timed out"}:
        return None
    return view.reason or view.outcome


@contextlib.asynccontextmanager
async def _controller() -> AsyncIterator[ControllerClient]:
    controller = await ControllerClient.connect()
    try:
        yield controller
    finally:
        await controller.close()


@contextlib.asynccontextmanager
async def _agent() -> AsyncIterator[AgentClient]:
    agent = await _connect_agent()
    try:
        yield agent
    finally:
        await agent.close()


async def _connect_agent() -> AgentClient:
    """Connect to the agent, also while it is being started again."""
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(ConnectionLost):
            return await AgentClient.connect()
        await asyncio.sleep(_PAUSE_S)
    return await AgentClient.connect()


async def _submit(
    controller: ControllerClient, agent: AgentClient, wanted: Wanted, status: Status
) -> str:
    job = secrets.token_hex(16)
    await agent.stage_kernel(job, wanted.ticket_s)
    try:
        await controller.submit(
            job, wanted.request(status), name=wanted.name, notebook=wanted.notebook
        )
    except NeverFits as error:
        await agent.discard(job)
        raise NeverFits(
            error.message, next_step="Use a kernel without a GPU, such as Python 3 (ipykernel)"
        ) from error
    except WorkbenchError:
        await agent.discard(job)
        raise
    return job


async def _drop(controller: ControllerClient, agent: AgentClient, job: str) -> None:
    """Take a ticket out of the queue, or give back what it was granted at this very moment."""
    with contextlib.suppress(WorkbenchError):
        await controller.cancel(job, "its kernel waits no longer")
    with contextlib.suppress(WorkbenchError):
        await agent.discard(job)


async def _until_ready(
    controller: ControllerClient, agent: AgentClient, job: str, deadline: float, wanted: Wanted
) -> None:
    """Return when the job's units are held on this host; raise what stands in the way."""
    views: list[JobView] = []
    held = asyncio.create_task(_held(agent, job))
    left_queue = asyncio.create_task(_left_queue(controller, job, views))
    timeout_s = max(0.0, deadline - asyncio.get_running_loop().time())
    try:
        done, _ = await asyncio.wait(
            {held, left_queue}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            raise _not_granted(views, wanted)
        for task in done:
            task.result()
    finally:
        for task in (held, left_queue):
            task.cancel()
        await asyncio.gather(held, left_queue, return_exceptions=True)


async def _held(agent: AgentClient, job: str) -> None:
    async with contextlib.aclosing(agent.follow(job)) as messages:
        async for message in messages:
            if isinstance(message, Advanced):
                return  # The keeper's first word: it has the units.
            assert isinstance(message, JobOver)
            raise _ended(message.ending.detail or message.ending.outcome)


async def _left_queue(controller: ControllerClient, job: str, views: list[JobView]) -> None:
    async with contextlib.aclosing(controller.watch(job)) as statuses:
        async for status in statuses:
            view = find_job(status, job)
            if view is None:
                continue
            views.append(view)
            if view.state == "ended":
                raise _ended(view.reason or view.outcome or "ended")


def _ended(why: str) -> UserError:
    return UserError(f"the kernel got no lease: {why}", next_step="Start the kernel again")


def _not_granted(views: list[JobView], wanted: Wanted) -> NotGranted:
    next_step = (
        f"The ticket is kept for {format_seconds(TICKET_S)}: the queue, and a notification in "
        "JupyterLab, say when the GPU is ready; then start the kernel again"
        if wanted.keeps_ticket
        else "The request was taken out of the queue: run %gpu-lease again later, or with --wait "
        "30m to keep your place in line while this cell waits"
    )
    if not views or views[-1].place is None:
        return NotGranted("the GPU is not ready yet", next_step=next_step)
    view = views[-1]
    return NotGranted(
        f"no lease yet, place {view.place} in line: {view.reason}{_estimate_text(view)}",
        next_step=next_step,
    )


def _estimate_text(view: JobView) -> str:
    estimate = view.estimate
    if estimate is None or estimate.high_s is None:
        return f" (start {estimate.reason})" if estimate and estimate.reason else ""
    low = format_seconds(estimate.low_s or 0)
    return f" (starts in {low} to {format_seconds(estimate.high_s)})"


def _default_cores(status: Status, gpus: int) -> int:
    cores = status.sample.host.cores_usable.value if status.sample else None
    host = int(cores or os.cpu_count() or 1)
    devices = len(status.sample.devices) if status.sample else 0
    used = sum(view.cores for view in status.jobs if view.state != "queued")
    share = gpus * host // max(devices, 1)
    return max(1, min(share, host - used, host // 2))


def _start_ticks(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError as error:
        raise UserError(f"there is no process {pid} to hold a lease") from error
    # The command may hold blanks and parentheses; what follows its last one does not.
    return int(text[text.rindex(b")") + 2 :].split()[_START_TICKS])
