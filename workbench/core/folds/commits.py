"""Commits decisions."""

from __future__ import annotations

from typing import Final

from workbench.core import fairness
from workbench.core.decisions import (
    Decision,
    End,
    Grant,
    Grow,
    Preempt,
    Resume,
    Shrink,
    Stop,
    Suspend,
)
from workbench.core.filing import put
from workbench.core.folds.leases import drop_claims
from workbench.core.job import Job, evolve
from workbench.core.model import DeviceId, DeviceStatus, JobState, Preemption
from workbench.core.state import State, lease_id
from workbench.core.transitions import next_state, refuse

_STOPS: Final = (Preemption.CHECKPOINT, Preemption.REQUEUE)


def grant(state: State, decision: Grant) -> None:
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
        refuse(decision, f"the next lease is {lease_id(state.next_lease)}")
    if job.owner not in state.agents:
        refuse(decision, "the owner's agent is not connected")
    if len(units.gpus) != job.request.gpus or len(set(units.gpus)) != len(units.gpus):
        refuse(decision, f"the job asked for {job.request.gpus} different GPUs")
    for gpu in units.gpus:
        if not may_be_leased(state, gpu):
            refuse(decision, f"{gpu} is leased, unknown or not available")
    if len({state.devices[gpu].simulated for gpu in units.gpus}) > 1:
        refuse(decision, "simulated and real GPUs are never mixed")
    if state.host is None or units.cores > state.host.cores - state.leased_cores:
        refuse(decision, "that many cores are not free")
    if units.memory_bytes > max(state.host.memory_bytes - state.leased_memory_bytes, 0):
        refuse(decision, "that much memory is not free")


def may_be_leased(state: State, gpu: DeviceId) -> bool:
    """Tells whether a GPU can be part of a lease from now on."""
    device = state.devices.get(gpu)
    return (
        device is not None
        and device.status is DeviceStatus.AVAILABLE
        and gpu not in state.holders
        and state.held is None
    )


def stop(state: State, decision: Stop) -> None:
    job, following, _ = holding_job(state, decision)
    state.cancelling.pop(job.id, None)
    drop_claims(state, job)
    ladder = job.ladder.at_rest() if job.ladder is not None else None
    after = evolve(job, state=following, stop=decision, preempt=None, ladder=ladder)
    put(state, after, before=job)


def preempt(state: State, decision: Preempt) -> None:
    job, following, _ = holding_job(state, decision)
    if decision.step not in job.request.preemption or decision.step not in _STOPS:
        refuse(decision, f"the job gives way by {job.request.preemption}")
    state.yielding[decision.winner] = (*state.yielding.get(decision.winner, ()), job.id)
    ladder = job.ladder
    # GPUs that it was asked for before are another's as soon as it gives them back.
    if ladder is not None and ladder.shrink is None:
        ladder = ladder.at_rest()
    put(state, evolve(job, state=following, preempt=decision, ladder=ladder), before=job)


def end(state: State, decision: End) -> None:
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


def holding_job(
    state: State, decision: Stop | Preempt | Shrink | Grow | Suspend | Resume
) -> tuple[Job, JobState, Grant]:
    """Finds the job of a decision on its lease, its next state and its grant."""
    job, following = _live_job(state, decision)
    if job.grant is None or job.grant.lease != decision.lease:
        refuse(decision, "the job does not hold this lease")
    return job, following, job.grant


def _live_job(state: State, decision: Decision) -> tuple[Job, JobState]:
    job = state.jobs.get(decision.job)
    if job is None:
        refuse(decision, "no such job is live")
    return job, next_state(decision, job.state)
