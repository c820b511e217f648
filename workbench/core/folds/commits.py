"""Commits decisions."""

from __future__ import annotations

from workbench.core import fairness, quotas
from workbench.core.decisions import Decision, End, Grant, Preempt, Stop
from workbench.core.filing import put
from workbench.core.folds.jobs import release_dependents
from workbench.core.folds.leases import forget_yielding
from workbench.core.folds.units import check_units, take
from workbench.core.job import Job, evolve
from workbench.core.model import JobState
from workbench.core.state import State, lease_id
from workbench.core.transitions import next_state, refuse


def grant(state: State, decision: Grant) -> None:
    job, following = _live_job(state, decision)
    _check_grant(state, decision, job)
    units = decision.units
    state.next_lease += 1
    state.leases[decision.lease] = job.id
    take(state, decision.lease, units)
    fairness.charge(state, job.owner, decision.at, fairness.weight(state, units))
    after = evolve(job, state=following, grant=decision, is_settled=decision.is_settled)
    quotas.charge(state, after, decision.at, units, is_over=False)
    put(state, after, before=job)


def _check_grant(state: State, decision: Grant, job: Job) -> None:
    if decision.lease != lease_id(state.next_lease):
        refuse(decision, f"the next lease is {lease_id(state.next_lease)}")
    if job.owner not in state.agents:
        refuse(decision, "the owner's agent is not connected")
    check_units(state, decision, job.request)


def stop(state: State, decision: Stop) -> None:
    job, following = _live_job(state, decision)
    if job.grant is None or job.grant.lease != decision.lease:
        refuse(decision, "the job does not hold this lease")
    state.cancelling.pop(job.id, None)
    if job.preempt is not None:
        forget_yielding(state, job.preempt)
    put(state, evolve(job, state=following, stop=decision, preempt=None), before=job)


def preempt(state: State, decision: Preempt) -> None:
    job, following = _live_job(state, decision)
    if job.grant is None or job.grant.lease != decision.lease:
        refuse(decision, "the job does not hold this lease")
    if decision.step not in job.request.preemption:
        refuse(decision, f"the job gives way by {job.request.preemption}")
    state.yielding[decision.winner] = (*state.yielding.get(decision.winner, ()), job.id)
    put(state, evolve(job, state=following, preempt=decision), before=job)


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


def _live_job(state: State, decision: Decision) -> tuple[Job, JobState]:
    job = state.jobs.get(decision.job)
    if job is None:
        refuse(decision, "no such job is live")
    return job, next_state(decision, job.state)
