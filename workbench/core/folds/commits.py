"""Commits decisions."""

from __future__ import annotations

from typing import Final

from workbench.core import fairness, quotas
from workbench.core.decisions import (
    End,
    Grant,
    Preempt,
    Step,
    Stop,
)
from workbench.core.filing import put
from workbench.core.folds.bookings import booked_by_others, note_use
from workbench.core.folds.jobs import release_dependents
from workbench.core.folds.leases import drop_claims
from workbench.core.folds.units import check_units, take
from workbench.core.job import Job, evolve
from workbench.core.model import JobState, Preemption
from workbench.core.state import State, lease_id
from workbench.core.transitions import next_state, refuse

_STOPS: Final = (Preemption.CHECKPOINT, Preemption.REQUEUE)


def grant(state: State, decision: Grant) -> None:
    job, following = _live_job(state, decision)
    _check_grant(state, decision, job)
    units = decision.units
    state.next_lease += 1
    state.leases[decision.lease] = job.id
    take(state, decision.lease, units)
    fairness.charge(state, job.owner, decision.at, fairness.weight(state, units))
    if state.booked:
        note_use(state, job.owner, units, decision.at)
    settled = decision.is_settled
    after = evolve(job, state=following, grant=decision, is_settled=settled, use=None)
    quotas.charge(state, after, decision.at, units, is_over=False)
    put(state, after, before=job)


def _check_grant(state: State, decision: Grant, job: Job) -> None:
    if decision.lease != lease_id(state.next_lease):
        refuse(decision, f"the next lease is {lease_id(state.next_lease)}")
    if job.owner not in state.agents:
        refuse(decision, "the owner's agent is not connected")
    check_units(state, decision, job.request)
    if state.booked and (others := booked_by_others(state, job.owner, decision.units.gpus)):
        refuse(decision, f"{others[0]} is booked by somebody else")


def stop(state: State, decision: Stop) -> None:
    job, following, _ = holding_job(state, decision)
    state.cancelling.pop(job.id, None)
    # A job that was to give its lease up still does: its preemption stands until its lease ends.
    ladder = job.ladder
    if ladder is not None:
        drop_claims(state, *(one for one in (ladder.shrink, ladder.suspend) if one is not None))
        ladder = ladder.at_rest()
    put(state, evolve(job, state=following, stop=decision, ladder=ladder), before=job)


def preempt(state: State, decision: Preempt) -> None:
    job, following, _ = holding_job(state, decision)
    if decision.step not in job.request.preemption or decision.step not in _STOPS:
        refuse(decision, f"the job gives way by {job.request.preemption}")
    if (decision.winner is None) == (decision.booking is None):
        refuse(decision, "either a job or a booking gets the units")
    if decision.winner is not None:
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
    release_dependents(state, after, decision.at)


def holding_job(state: State, decision: Stop | Preempt | Step) -> tuple[Job, JobState, Grant]:
    """Finds the job of a decision on its lease, its next state and its grant."""
    job, following = _live_job(state, decision)
    if job.grant is None or job.grant.lease != decision.lease:
        refuse(decision, "the job does not hold this lease")
    return job, following, job.grant


def _live_job(state: State, decision: Grant | Stop | Preempt | Step | End) -> tuple[Job, JobState]:
    job = state.jobs.get(decision.job)
    if job is None:
        refuse(decision, "no such job is live")
    return job, next_state(decision, job.state)
