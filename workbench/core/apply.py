"""Folds one event or decision into the state: checks everything first, then changes it.

The journal replays through here, so what was legal once must stay legal: what users may ask for
is checked in `admission`, before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NoReturn

from workbench.core.decisions import Decision, End, Grant, Stop
from workbench.core.errors import IllegalEvent
from workbench.core.events import (
    AgentConnected,
    AgentLost,
    CancelRequested,
    DeviceBusyOutside,
    DeviceLost,
    DeviceSeen,
    DispatchHeld,
    DispatchResumed,
    Event,
    HostRebooted,
    HostSeen,
    JobSubmitted,
    LeaseEnded,
    LeaseStarted,
    Tick,
)
from workbench.core.model import DeviceId, DeviceStatus, JobState, Outcome
from workbench.core.state import ENDED_JOBS_KEPT, Device, Host, Job, State, deadline_of, lease_id
from workbench.core.transitions import next_state


def apply(state: State, entry: Event | Decision) -> None:
    """Folds a fact or commits a wish.

    Args:
        state: Changed in place, unless this raises.
        entry: What the journal holds next.

    Raises:
        IllegalEvent: It cannot follow this state; the state is unchanged.
    """
    if isinstance(entry, Decision):
        if entry.id != state.next_decision or entry.at != state.at:
            _refuse(entry, f"the next decision is {state.next_decision} at {state.at}")
    elif not state.at <= entry.at < float("inf"):
        _refuse(entry, f"the clock is at {state.at} and never goes back")
    _FOLDS[type(entry)](state, entry)
    state.at = entry.at
    if isinstance(entry, Decision):
        state.next_decision += 1


def _refuse(entry: Event | Decision, rule: str) -> NoReturn:
    message = f"{type(entry).__name__} is illegal: {rule}: {entry}"
    raise IllegalEvent(message)


def _put(state: State, job: Job, *, before: Job | None) -> None:
    """Replaces a job and keeps its deadline and the list of ended jobs in step."""
    old = deadline_of(before) if before else None
    new = deadline_of(job)
    if old != new:
        if old:
            del state.deadlines[bisect_left(state.deadlines, old)]
        if new:
            insort(state.deadlines, new)
    if job.state is not JobState.ENDED:
        state.jobs[job.id] = job
        return
    state.jobs.pop(job.id, None)
    state.ended[job.id] = job
    if len(state.ended) > ENDED_JOBS_KEPT:
        del state.ended[next(iter(state.ended))]


# --- host, devices, agents -------------------------------------------------------------------


def _host_seen(state: State, event: HostSeen) -> None:
    if event.cores < 1 or event.memory_bytes < 1:
        _refuse(event, "a host has cores and memory")
    state.host = Host(cores=event.cores, memory_bytes=event.memory_bytes)


def _device_seen(state: State, event: DeviceSeen) -> None:
    known = state.devices.get(event.device)
    if known is not None and known.simulated != event.simulated:
        _refuse(event, "a UUID is simulated for ever or never")
    busy = event.busy_outside is not None
    state.devices[event.device] = Device(
        id=event.device,
        model=event.model,
        memory_bytes=event.memory_bytes,
        simulated=event.simulated,
        status=DeviceStatus.BUSY_OUTSIDE if busy else DeviceStatus.AVAILABLE,
        reason=event.busy_outside or "",
    )


def _device_lost(state: State, event: DeviceLost) -> None:
    device = _known_device(state, event)
    status = DeviceStatus.MISSING if event.missing else DeviceStatus.LOST
    state.devices[device.id] = replace(device, status=status, reason=event.reason)


def _device_busy_outside(state: State, event: DeviceBusyOutside) -> None:
    device = _known_device(state, event)
    state.devices[device.id] = replace(
        device, status=DeviceStatus.BUSY_OUTSIDE, reason=event.reason
    )


def _known_device(state: State, event: DeviceLost | DeviceBusyOutside) -> Device:
    device = state.devices.get(event.device)
    if device is None:
        _refuse(event, "this GPU was never seen")
    return device


def _dispatch_held(state: State, event: DispatchHeld) -> None:
    state.held = event.reason


def _dispatch_resumed(state: State, _event: DispatchResumed) -> None:
    state.held = None


def _agent_connected(state: State, event: AgentConnected) -> None:
    state.agents.setdefault(event.owner, event.at)


def _agent_lost(state: State, event: AgentLost) -> None:
    state.agents.pop(event.owner, None)


def _tick(_state: State, _event: Tick) -> None:
    """Time itself is folded for every event."""


# --- jobs and leases ---------------------------------------------------------------------------


def _job_submitted(state: State, event: JobSubmitted) -> None:
    known = state.find(event.job)
    following = next_state(event, known.state if known else None)
    if known is not None:
        if (known.owner, known.request) != (event.owner, event.request):
            _refuse(event, "the job id belongs to another job")
        return
    job = Job(
        id=event.job,
        owner=event.owner,
        request=event.request,
        name=event.name,
        notebook=event.notebook,
        number=state.next_job,
        submitted_at=event.at,
        state=following,
    )
    state.next_job += 1
    _put(state, job, before=None)


def _cancel_requested(state: State, event: CancelRequested) -> None:
    known = state.find(event.job)
    next_state(event, known.state if known else None)
    if known and known.state not in {JobState.STOPPING, JobState.ENDED}:
        state.cancelling[event.job] = event.reason


def _lease_started(state: State, event: LeaseStarted) -> None:
    job = _job_of(state, event)
    following = next_state(event, job.state if job else JobState.ENDED)
    if job and job.started_at is None:
        _put(state, replace(job, state=following, started_at=event.at), before=job)


def _lease_ended(state: State, event: LeaseEnded) -> None:
    job = _job_of(state, event)
    next_state(event, job.state if job else JobState.ENDED)
    if job:
        _end_lease(state, job, event.at, event.outcome, event.detail)


def _host_rebooted(state: State, event: HostRebooted) -> None:
    for job_id in list(state.leases.values()):
        job = state.jobs[job_id]
        next_state(event, job.state)
        _end_lease(state, job, event.at, Outcome.LOST, "the host was restarted")
    state.agents.clear()


def _job_of(state: State, event: LeaseStarted | LeaseEnded) -> Job | None:
    """Finds the job of a live lease; None for a lease that is over.

    A lease that was never granted is refused. Leases are numbered, so the two can be told apart
    for ever.
    """
    job_id = state.leases.get(event.lease)
    if job_id is not None:
        return state.jobs[job_id]
    number = event.lease.removeprefix("L")
    if not number.isdecimal() or not int(number) < state.next_lease:
        _refuse(event, "there never was such a lease")
    return None


def _end_lease(state: State, job: Job, at: float, told: Outcome, detail: str) -> None:
    """Frees a lease's units. A stop's outcome wins, unless the job was done before it came."""
    if job.grant is None:
        message = f"job {job.id} has no lease to end"
        raise IllegalEvent(message)
    if job.stop is not None and told is not Outcome.DONE:
        told, detail = job.stop.outcome, job.stop.reason
    units = job.grant.units
    del state.leases[job.grant.lease]
    for gpu in units.gpus:
        del state.holders[gpu]
    state.leased_cores -= units.cores
    state.leased_memory_bytes -= units.memory_bytes
    state.cancelling.pop(job.id, None)
    after = replace(job, state=JobState.ENDED, ended_at=at, outcome=told, detail=detail)
    _put(state, after, before=job)


# --- decisions ---------------------------------------------------------------------------------


def _grant(state: State, decision: Grant) -> None:
    job, following = _live_job(state, decision)
    _check_grant(state, decision, job)
    units = decision.units
    state.next_lease += 1
    state.leases[decision.lease] = job.id
    for gpu in units.gpus:
        state.holders[gpu] = decision.lease
    state.leased_cores += units.cores
    state.leased_memory_bytes += units.memory_bytes
    _put(state, replace(job, state=following, grant=decision), before=job)


def _check_grant(state: State, decision: Grant, job: Job) -> None:
    units = decision.units
    if decision.lease != lease_id(state.next_lease):
        _refuse(decision, f"the next lease is {lease_id(state.next_lease)}")
    if job.owner not in state.agents:
        _refuse(decision, "the owner's agent is not connected")
    if len(units.gpus) != job.request.gpus or len(set(units.gpus)) != len(units.gpus):
        _refuse(decision, f"the job asked for {job.request.gpus} different GPUs")
    for gpu in units.gpus:
        if not _may_be_leased(state, gpu):
            _refuse(decision, f"{gpu} is leased, unknown or not available")
    if len({state.devices[gpu].simulated for gpu in units.gpus}) > 1:
        _refuse(decision, "simulated and real GPUs are never mixed")
    if state.host is None or units.cores > state.host.cores - state.leased_cores:
        _refuse(decision, "that many cores are not free")
    if units.memory_bytes > max(state.host.memory_bytes - state.leased_memory_bytes, 0):
        _refuse(decision, "that much memory is not free")


def _may_be_leased(state: State, gpu: DeviceId) -> bool:
    device = state.devices.get(gpu)
    return (
        device is not None
        and device.status is DeviceStatus.AVAILABLE
        and gpu not in state.holders
        and state.held is None
    )


def _stop(state: State, decision: Stop) -> None:
    job, following = _live_job(state, decision)
    if job.grant is None or job.grant.lease != decision.lease:
        _refuse(decision, "the job does not hold this lease")
    state.cancelling.pop(job.id, None)
    _put(state, replace(job, state=following, stop=decision), before=job)


def _end(state: State, decision: End) -> None:
    job, following = _live_job(state, decision)
    state.cancelling.pop(job.id, None)
    after = replace(
        job,
        state=following,
        ended_at=decision.at,
        outcome=decision.outcome,
        detail=decision.reason,
    )
    _put(state, after, before=job)


def _live_job(state: State, decision: Decision) -> tuple[Job, JobState]:
    job = state.jobs.get(decision.job)
    if job is None:
        _refuse(decision, "no such job is live")
    return job, next_state(decision, job.state)


_FOLDS: Final[dict[type[Event | Decision], Callable[[State, Any], None]]] = {
    HostSeen: _host_seen,
    DeviceSeen: _device_seen,
    DeviceLost: _device_lost,
    DeviceBusyOutside: _device_busy_outside,
    DispatchHeld: _dispatch_held,
    DispatchResumed: _dispatch_resumed,
    AgentConnected: _agent_connected,
    AgentLost: _agent_lost,
    JobSubmitted: _job_submitted,
    CancelRequested: _cancel_requested,
    LeaseStarted: _lease_started,
    LeaseEnded: _lease_ended,
    HostRebooted: _host_rebooted,
    Tick: _tick,
    Grant: _grant,
    Stop: _stop,
    End: _end,
}
