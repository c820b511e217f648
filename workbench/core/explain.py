"""Why a job is where it is, and when it likely starts: one sentence, one range."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.core.errors import UserError
from workbench.core.estimate import estimate
from workbench.core.job import Job
from workbench.core.model import DeviceStatus, JobId, JobKind, JobState, Seconds, Shape
from workbench.core.placement import gpus_in_service, is_large_enough, shape_wanted
from workbench.core.spelling import count, short_device, short_job, spell_bytes
from workbench.core.standings import Standings, in_order
from workbench.core.state import Device, State

_DEVICES_NAMED = 4
"""A sentence names this many GPUs and counts the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Where a job stands.

    Attributes:
        place: Among all waiting jobs, 1 is next; None unless it waits.
        reason: Why it waits, why it runs where it does, or how it ended; one sentence without its
            full stop, empty for a job that is done.
        low_s: The soonest start in seconds from now; None is unknown or does not wait.
        high_s: The latest start if what `estimate_reason` assumes holds; None likewise.
        estimate_reason: What the range rests on, or why it is unknown; empty unless it waits.
    """

    place: int | None
    reason: str
    low_s: Seconds | None
    high_s: Seconds | None
    estimate_reason: str


def explain(state: State, standings: Standings, job: JobId) -> Explanation:
    """Explains one job; to explain many, `explain_waiting` orders the queue once.

    Args:
        state: The state; it is not changed.
        standings: Where its jobs stand.
        job: Its id.

    Returns:
        Where it stands now.

    Raises:
        UserError: No such job is known.
    """
    known = state.find(job)
    if known is None:
        message = f"no job {job} is known here"
        raise UserError(message, next_step="`workbench jobs` lists the jobs")
    if known.state is JobState.QUEUED or known.state is JobState.SUSPENDED:
        return explain_waiting(state, standings)[job]
    reason = known.detail
    if known.state is not JobState.ENDED:
        decision = known.stop or known.preempt or known.grant
        reason = decision.reason if decision else ""
        if known.ladder is not None and decision is known.grant:
            reason = known.ladder.why or reason
        if known.state is JobState.STARTING:
            if known.owner not in state.agents:
                reason = _NO_AGENT
            elif known.request.kind is JobKind.KERNEL:
                reason = _READY
    return Explanation(place=None, reason=reason, low_s=None, high_s=None, estimate_reason="")


def explain_waiting(state: State, standings: Standings) -> dict[JobId, Explanation]:
    """Explains all waiting jobs.

    Args:
        state: The state; it is not changed.
        standings: Where its jobs stand.

    Returns:
        Where each stands now, the next one first.
    """
    order = in_order(state, standings)
    estimates = estimate(state, order)
    reasons: dict[tuple[bool, Shape], str] = {}
    explanations: dict[JobId, Explanation] = {}
    for place, job in enumerate(order, start=1):
        kind = (job.owner in state.agents, shape_wanted(job))
        if kind not in reasons:
            reasons[kind] = _why_it_waits(state, job, kind[1])
        range_, reason = estimates[job.id], reasons[kind]
        if job.ladder is not None:
            reason = f"it is suspended: {job.ladder.why}; {reason}"
        explanations[job.id] = Explanation(
            place=place,
            reason=reason,
            low_s=range_.low_s,
            high_s=range_.high_s,
            estimate_reason=range_.reason,
        )
    return explanations


_READY = "ready: start the kernel"
_NO_AGENT = "its agent is not running: open Jupyter or run `workbench up`"


def _why_it_waits(state: State, job: Job, shape: Shape) -> str:
    if job.owner not in state.agents:
        return _NO_AGENT
    if shape.gpus and state.held is not None:
        return f"no GPU is handed out now: {state.held}"
    reasons = [
        _why_no_gpus(state, shape),
        _why_no_cores(state, shape),
        _why_no_memory(state, shape),
    ]
    return "; ".join(reason for reason in reasons if reason) or "it is about to start"


def _why_no_gpus(state: State, shape: Shape) -> str:
    if not shape.gpus:
        return ""
    large = [gpu for gpu in gpus_in_service(state) if is_large_enough(gpu, shape.gpu_memory_bytes)]
    blocked = [why for gpu in large if (why := _why_not_free(state, gpu))]
    free = len(large) - len(blocked)
    if free >= shape.gpus:
        return ""
    blocked += _missing(state, shape)
    wanted = count(shape.gpus, "GPU")
    if shape.gpu_memory_bytes:
        wanted += f" with {spell_bytes(shape.gpu_memory_bytes)} each"
    named = blocked[:_DEVICES_NAMED]
    if len(blocked) > len(named):
        named.append(f"{len(blocked) - len(named)} more")
    why = ", ".join(named) or "no other GPU in service is large enough"
    return f"it waits for {wanted}, {free} free: {why}"


def _missing(state: State, shape: Shape) -> list[str]:
    """Names the GPUs that were there before and may come back.

    Not those that are not simulated any more, and while GPUs are simulated not the real ones.
    """
    if any(gpu.simulated for gpu in gpus_in_service(state)):
        return []
    return [
        f"{short_device(gpu.id)} is missing ({gpu.reason})"
        for gpu in state.devices.values()
        if gpu.status is DeviceStatus.MISSING
        and not gpu.simulated
        and is_large_enough(gpu, shape.gpu_memory_bytes)
    ]


def _why_not_free(state: State, gpu: Device) -> str:
    name, holder = short_device(gpu.id), state.holders.get(gpu.id)
    if gpu.status is not DeviceStatus.AVAILABLE:
        return f"{name} is {gpu.status} ({gpu.reason})"
    return f"{name} is held by {short_job(state.leases[holder])}" if holder else ""


def _why_no_cores(state: State, shape: Shape) -> str:
    cores = state.host.cores if state.host else 0
    free = max(cores - state.leased_cores, 0)
    if shape.cores <= free:
        return ""
    return f"it waits for {count(shape.cores, 'core')}, {free} of {cores} free"


def _why_no_memory(state: State, shape: Shape) -> str:
    memory_bytes = state.host.memory_bytes if state.host else 0
    free = max(memory_bytes - state.leased_memory_bytes, 0)
    if shape.memory_bytes <= free:
        return ""
    wanted, all_ = spell_bytes(shape.memory_bytes), spell_bytes(memory_bytes)
    return f"it waits for {wanted} of host memory, {spell_bytes(free)} of {all_} free"
