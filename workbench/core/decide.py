"""What to do next: proposes decisions and changes nothing.

Overdue jobs come first, then classes, strictly; within a class the policy's order, in which the
jobs of owners who used more stand back. A job that does not fit may take the units of running ones
that stand lower.
"""

from __future__ import annotations

from workbench.core.bookings import Look
from workbench.core.decisions import Decision, End, Grant, Stop
from workbench.core.growth import growths
from workbench.core.guard import Guard
from workbench.core.job import Job
from workbench.core.model import JobId, JobState, Outcome, Seconds
from workbench.core.notices import giving_way, going_on
from workbench.core.placement import Pool
from workbench.core.round import GiveWay, Round, Start
from workbench.core.standings import Standings
from workbench.core.state import State, lease_id


def decide(state: State, standings: Standings, pool: Pool) -> tuple[list[Decision], Seconds | None]:
    """Proposes what the latest event calls for.

    Args:
        state: The state; it is not changed.
        standings: Where its jobs stand; they are not changed.
        pool: What is free in it; it is not changed.

    Returns:
        Decisions to commit in this order; after that, nothing is left to decide, unless a job ended
        that others wait for. And when time alone lets a job start, because it will have been
        patient enough or a limit is lifted; None if none waits for that.
    """
    leaving = _leaving(state)
    decisions: list[Decision] = []
    for job_id, (outcome, reason) in leaving.items():
        number = state.next_decision + len(decisions)
        decisions.append(_leave(state, state.jobs[job_id], number, outcome, reason))
    guard = None
    if state.bookings:
        look = Look(state, standings.settings, leaving, state.next_decision + len(decisions))
        look.look()
        decisions += look.decisions
        leaving = look.leaving
        guard = Guard(state, standings.settings, look.open, leaving)
    if state.waiting_jobs == 0 and not state.shrunk:
        return decisions, None
    round_ = Round(state, standings, pool, leaving, guard)
    number, lease = state.next_decision + len(decisions), state.next_lease
    for wish in round_.wishes():
        if isinstance(wish, GiveWay):
            decisions.append(giving_way(state, wish.one, wish.winner, number))
        elif wish.job.grant is not None:
            again = going_on(state, wish.job, number, wish.reason, is_settled=wish.is_settled)
            decisions.append(again)
        else:
            decisions.append(_grant(state, wish, number, lease))
            lease += 1
        number += 1
    if state.shrunk:
        decisions += growths(state, standings, round_, number)
    return decisions, round_.changes_at()


def _grant(state: State, start: Start, number: int, lease: int) -> Grant:
    return Grant(
        id=number,
        at=state.at,
        lease=lease_id(lease),
        job=start.job.id,
        units=start.units,
        reason=start.reason,
        is_settled=start.is_settled,
        counts_as=start.counts_as,
    )


def _leaving(state: State) -> dict[JobId, tuple[Outcome, str]]:
    """Lists the jobs that were cancelled or whose time is over, with outcome and reason."""
    leaving = {job: (Outcome.CANCELLED, reason) for job, reason in state.cancelling.items()}
    for deadline in state.deadlines:
        if deadline.at > state.at:
            break
        job = state.jobs[deadline.job]
        if job.state is JobState.QUEUED:
            reason = f"it waited longer than its limit of {job.request.wait_limit_s:g} s"
            leaving.setdefault(job.id, (Outcome.EXPIRED, reason))
        else:
            reason = f"it ran longer than its limit of {job.request.time_limit_s:g} s"
            leaving.setdefault(job.id, (Outcome.TIMED_OUT, reason))
    return leaving


def _leave(state: State, job: Job, number: int, outcome: Outcome, reason: str) -> Decision:
    if job.grant is None:
        return End(id=number, at=state.at, job=job.id, outcome=outcome, reason=reason)
    lease = job.grant.lease
    return Stop(id=number, at=state.at, lease=lease, job=job.id, outcome=outcome, reason=reason)
