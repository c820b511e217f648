"""Folds what becomes of leases."""

from __future__ import annotations

from typing import Final

from workbench.core import fairness
from workbench.core.decisions import Preempt, Shrink, Suspend
from workbench.core.errors import IllegalEvent
from workbench.core.events import (
    HostRebooted,
    LeaseEnded,
    LeaseGrown,
    LeaseResumed,
    LeaseShrunk,
    LeaseStarted,
    LeaseSuspended,
)
from workbench.core.filing import cross, put
from workbench.core.history import EDGES_S, size_class
from workbench.core.job import Job, claims_of, crossing_of, evolve, served_s, useful_s
from workbench.core.model import JobState, Outcome
from workbench.core.state import State
from workbench.core.transitions import next_state, refuse

_BY_ITSELF: Final = frozenset({Outcome.DONE, Outcome.FAILED})
"""How a job ends that nobody stopped: its length says how long jobs run."""


def lease_started(state: State, event: LeaseStarted) -> None:
    job = job_of(state, event)
    following = next_state(event, job.state if job else JobState.ENDED)
    if job and job.started_at is None and job.ladder is None:  # A suspended one started before.
        put(state, evolve(job, state=following, started_at=event.at), before=job)


def lease_ended(state: State, event: LeaseEnded) -> None:
    job = job_of(state, event)
    following = next_state(event, job.state if job else JobState.ENDED)
    if job:
        if event.outcome in _BY_ITSELF:
            following = JobState.ENDED  # It was over before it was made to give way.
        _end_lease(state, job, event.at, (event.outcome, event.detail), following)


def host_rebooted(state: State, event: HostRebooted) -> None:
    for job_id in list(state.leases.values()):
        job = state.jobs[job_id]
        following = next_state(event, job.state)
        _end_lease(state, job, event.at, (Outcome.LOST, "the host was restarted"), following)
    state.agents.clear()


def job_of(
    state: State,
    event: LeaseStarted | LeaseShrunk | LeaseGrown | LeaseSuspended | LeaseResumed | LeaseEnded,
) -> Job | None:
    """Finds the job of a live lease; None for a lease that is over.

    A lease that was never granted is refused. Leases are numbered, so the two can be told apart
    for ever.
    """
    job_id = state.leases.get(event.lease)
    if job_id is not None:
        return state.jobs[job_id]
    number = event.lease.removeprefix("L")
    if not number.isdecimal() or not int(number) < state.next_lease:
        refuse(event, "there never was such a lease")
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
    drop_claims(state, job)
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
        ladder=None,
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
        ladder=None,
        started_at=None,
    )


def drop_claims(state: State, job: Job) -> None:
    """Forgets to whom a job was about to give units."""
    for claim in claims_of(job):
        forget_yielding(state, claim)


def forget_yielding(state: State, claim: Preempt | Shrink | Suspend) -> None:
    """Forgets that a job was about to give units to another."""
    left = tuple(job for job in state.yielding[claim.winner] if job != claim.job)
    if left:
        state.yielding[claim.winner] = left
    else:
        del state.yielding[claim.winner]
