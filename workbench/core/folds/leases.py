"""Folds what becomes of leases."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from workbench.core import fairness, quotas
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
    ProgressMade,
    UseFell,
    UseRose,
)
from workbench.core.filing import cross, put
from workbench.core.folds.bookings import note_use
from workbench.core.folds.jobs import release_dependents
from workbench.core.folds.units import give_back
from workbench.core.history import EDGES_S, size_class
from workbench.core.job import Job, claims_of, crossing_of, evolve, served_s, useful_s
from workbench.core.model import JobState, Outcome, Preemption
from workbench.core.state import State
from workbench.core.transitions import next_state, refuse
from workbench.core.use import Use

_BY_ITSELF: Final = frozenset({Outcome.DONE, Outcome.FAILED})
"""How a job ends that nobody stopped: its length says how long jobs run."""
_RETRIED: Final = frozenset({Outcome.FAILED, Outcome.KILLED, Outcome.LOST})
_UNASKED: Final = frozenset(
    {
        JobState.STARTING,
        JobState.RUNNING,
        JobState.SHRINKING,
        JobState.SUSPENDING,
        JobState.SUSPENDED,
        JobState.RESUMING,
    }
)
"""In which a lease ends by itself only."""
_LONGEST_DELAY_S: Final = 3600.0


def lease_started(state: State, event: LeaseStarted) -> None:
    job = job_of(state, event)
    following = next_state(event, job.state if job else JobState.ENDED)
    if job and job.started_at is None and job.ladder is None:  # A suspended one started before.
        put(state, evolve(job, state=following, started_at=event.at), before=job)


def lease_ended(state: State, event: LeaseEnded) -> None:
    job = job_of(state, event)
    next_state(event, job.state if job else JobState.ENDED)
    if job:
        # What is to give way may be over before it does.
        instead = job.state is JobState.PREEMPTING and event.outcome in _BY_ITSELF
        instead |= job.state in _UNASKED and _has_retries(job, event.outcome)
        following = next_state(event, job.state, instead=instead)
        _end_lease(state, job, event.at, (event.outcome, event.detail), following)


def host_rebooted(state: State, event: HostRebooted) -> None:
    for job_id in list(state.leases.values()):
        job = state.jobs[job_id]
        instead = job.state in _UNASKED and _has_retries(job, Outcome.LOST)
        following = next_state(event, job.state, instead=instead)
        _end_lease(state, job, event.at, (Outcome.LOST, "the host was restarted"), following)
    state.agents.clear()


def job_of(
    state: State,
    event: LeaseStarted
    | LeaseShrunk
    | LeaseGrown
    | LeaseSuspended
    | LeaseResumed
    | LeaseEnded
    | UseFell
    | UseRose
    | ProgressMade,
) -> Job | None:
    """Finds the job of a live lease; None for a lease that is over.

    A lease that was never granted is refused. Leases are numbered, so the two can be told apart
    for ever.

    Args:
        state: The state; it is not changed.
        event: An event about a lease.

    Raises:
        IllegalEvent: There never was such a lease.
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
    if job.use is not None or job.progress is not None:
        job = _unmeasured(job)
    while (crossed := crossing_of(job)) is not None and crossed.at <= at:
        job = cross(state, job)
    units = grant.units
    del state.leases[grant.lease]
    give_back(state, grant.lease, units)
    fairness.charge(state, job.owner, at, -fairness.weight(state, units))
    quotas.charge(state, job, at, units, is_over=True)
    if state.booked:
        note_use(state, job.owner, units, at)
    served = served_s(job, at)
    if job.preempt is not None or job.ladder is not None:
        drop_claims(state, *claims_of(job))
    if following is JobState.QUEUED:
        again = _waiting_again(job, at, served)
        if job.state is not JobState.PREEMPTING:
            again = _retried(again, told)
        put(state, again, before=job)
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
    release_dependents(state, after, at)


def _has_retries(job: Job, outcome: Outcome) -> bool:
    return outcome in _RETRIED and job.failures < job.request.retries


def _retried(job: Job, told: tuple[Outcome, str]) -> Job:
    """Puts a job off that failed: twice as long each time."""
    delay_s = min(job.request.retry_delay_s * 2.0**job.failures, _LONGEST_DELAY_S)
    outcome, detail = told
    return evolve(
        job,
        failures=job.failures + 1,
        queued_at=job.queued_at + delay_s,
        put_off_s=job.put_off_s + delay_s,
        detail=f"{outcome}: {detail}" if detail else outcome.value,
    )


def _unmeasured(job: Job) -> Job:
    """Forgets what was told of a lease.

    Progress that a checkpoint keeps is kept. So is that a job which gives way is lowered, until it
    has units again: else it might come before the one that they were taken for.
    """
    use, progress = job.use, job.progress
    if use is not None:
        is_kept = job.preempt is not None and use.lowered is not None
        use = Use(part=use.part, lowered=use.lowered) if is_kept else None
    if progress is not None:
        is_kept = job.preempt is not None and job.preempt.step is Preemption.CHECKPOINT
        progress = replace(progress, nearly_done_from=None) if is_kept else None
    return evolve(job, use=use, progress=progress)


def _waiting_again(job: Job, at: float, served: float) -> Job:
    return evolve(
        job,
        state=JobState.QUEUED,
        queued_at=at,
        served_s=served,
        preemptions=job.preemptions + (job.state is JobState.PREEMPTING),
        grant=None,
        preempt=None,
        ladder=None,
        started_at=None,
    )


def drop_claims(state: State, *claims: Preempt | Shrink | Suspend) -> None:
    """Forgets to whom a job was about to give units."""
    for claim in claims:
        forget_yielding(state, claim)


def forget_yielding(state: State, claim: Preempt | Shrink | Suspend) -> None:
    """Forgets that a job was about to give units to another."""
    if claim.winner is None:
        return
    left = tuple(job for job in state.yielding[claim.winner] if job != claim.job)
    if left:
        state.yielding[claim.winner] = left
    else:
        del state.yielding[claim.winner]
