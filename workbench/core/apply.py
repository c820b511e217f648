"""Folds one event or decision into the state: checks everything first, then changes it.

The journal replays through here, so what was legal once must stay legal: what users may ask for
is checked in `admission`, before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NoReturn

from workbench.core import fairness
from workbench.core.decisions import Decision, End, Grant, Preempt, Stop
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
from workbench.core.filing import cross, put
from workbench.core.history import EDGES_S, size_class
from workbench.core.model import DeviceId, DeviceStatus, JobState, Outcome
from workbench.core.state import (
    Device,
    Host,
    Job,
    State,
    crossing_of,
    evolve,
    lease_id,
    served_s,
    useful_s,
)
from workbench.core.transitions import next_state

_BY_ITSELF: Final = frozenset({Outcome.DONE, Outcome.FAILED})
"""How a job ends that nobody stopped: its length says how long jobs run."""


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
    while state.crossings and state.crossings[0].at <= state.at:
        cross(state, state.jobs[state.crossings[0].job])


def _refuse(entry: Event | Decision, rule: str) -> NoReturn:
    message = f"{type(entry).__name__} is illegal: {rule}: {entry}"
    raise IllegalEvent(message)


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
        node=event.node,
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
        queued_at=event.at,
        entered_at=event.at,
        state=following,
    )
    state.next_job += 1
    put(state, job, before=None)


def _cancel_requested(state: State, event: CancelRequested) -> None:
    known = state.find(event.job)
    next_state(event, known.state if known else None)
    if known and known.state not in {JobState.STOPPING, JobState.ENDED}:
        state.cancelling[event.job] = event.reason


def _lease_started(state: State, event: LeaseStarted) -> None:
    job = _job_of(state, event)
    following = next_state(event, job.state if job else JobState.ENDED)
    if job and job.started_at is None:
        put(state, evolve(job, state=following, started_at=event.at), before=job)


def _lease_ended(state: State, event: LeaseEnded) -> None:
    job = _job_of(state, event)
    following = next_state(event, job.state if job else JobState.ENDED)
    if job:
        if event.outcome in _BY_ITSELF:
            following = JobState.ENDED  # It was over before it was made to give way.
        _end_lease(state, job, event.at, (event.outcome, event.detail), following)


def _host_rebooted(state: State, event: HostRebooted) -> None:
    for job_id in list(state.leases.values()):
        job = state.jobs[job_id]
        following = next_state(event, job.state)
        _end_lease(state, job, event.at, (Outcome.LOST, "the host was restarted"), following)
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


def _end_lease(
    state: State, job: Job, at: float, told: tuple[Outcome, str], following: JobState
) -> None:
    """Frees a lease's units. A stop's outcome wins, unless the job was done before it came."""
    if job.grant is None:
        message = f"job {job.id} has no lease to end"
        raise IllegalEvent(message)
    grant = job.grant
    while (crossed := crossing_of(job)) is not None and crossed.at <= at:
        job = cross(state, job)
    units = grant.units
    del state.leases[grant.lease]
    for gpu in units.gpus:
        del state.holders[gpu]
    state.leased_cores -= units.cores
    state.leased_memory_bytes -= units.memory_bytes
    fairness.charge(state, job.owner, at, -fairness.weight(units))
    served = served_s(job, at)
    if job.preempt is not None:
        _forget_yielding(state, job.preempt)
    if following is JobState.QUEUED:
        put(state, _waiting_again(job, at, served), before=job)
        return
    if job.stop is not None and told[0] is not Outcome.DONE:
        told = (job.stop.outcome, job.stop.reason)
    if job.started_at is not None:
        begin_s = EDGES_S[job.level - 1] if job.level else 0.0
        spent_s = max(useful_s(job, at) - begin_s, 1.0)
        has_ended = told[0] in _BY_ITSELF
        state.history.observe(size_class(job.request.gpus), job.level, spent_s, has_ended=has_ended)
    state.cancelling.pop(job.id, None)
    outcome, detail = told
    after = evolve(
        job,
        state=following,
        preempt=None,
        served_s=served,
        ended_at=at,
        outcome=outcome,
        detail=detail,
    )
    put(state, after, before=job)


def _waiting_again(job: Job, at: float, served: float) -> Job:
    return evolve(
        job,
        state=JobState.QUEUED,
        queued_at=at,
        served_s=served,
        preemptions=job.preemptions + 1,
        grant=None,
        preempt=None,
        started_at=None,
    )


def _forget_yielding(state: State, preempt: Preempt) -> None:
    left = tuple(job for job in state.yielding[preempt.winner] if job != preempt.job)
    if left:
        state.yielding[preempt.winner] = left
    else:
        del state.yielding[preempt.winner]


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
    fairness.charge(state, job.owner, decision.at, fairness.weight(units))
    put(
        state,
        evolve(job, state=following, grant=decision, is_settled=decision.is_settled),
        before=job,
    )


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
    if job.preempt is not None:
        _forget_yielding(state, job.preempt)
    put(state, evolve(job, state=following, stop=decision, preempt=None), before=job)


def _preempt(state: State, decision: Preempt) -> None:
    job, following = _live_job(state, decision)
    if job.grant is None or job.grant.lease != decision.lease:
        _refuse(decision, "the job does not hold this lease")
    if decision.step not in job.request.preemption:
        _refuse(decision, f"the job gives way by {job.request.preemption}")
    state.yielding[decision.winner] = (*state.yielding.get(decision.winner, ()), job.id)
    put(state, evolve(job, state=following, preempt=decision), before=job)


def _end(state: State, decision: End) -> None:
    job, following = _live_job(state, decision)
    state.cancelling.pop(job.id, None)
    after = evolve(
        job,
        state=following,
        ended_at=decision.at,
        outcome=decision.outcome,
        detail=decision.reason,
    )
    put(state, after, before=job)


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
    Preempt: _preempt,
    End: _end,
}
