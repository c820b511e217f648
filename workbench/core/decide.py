"""What to do next: proposes decisions and changes nothing.

Classes are strict: a waiting job of a higher class is always considered first. Within a class the
policy's order is greedy: a job that does not fit does not hold up a later one that does.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace

from workbench.core import placement
from workbench.core.decisions import Decision, End, Grant, Stop
from workbench.core.model import JobId, JobState, Outcome, PriorityClass, Units
from workbench.core.placement import Free, Shape
from workbench.core.state import Job, State, lease_id
from workbench.core.waiting import Queue, Turn


def decide(state: State, queue: Queue) -> list[Decision]:
    """Proposes what the latest event calls for.

    Args:
        state: The state; it is not changed.
        queue: The waiting jobs of this state in the policy's order; it is not changed.

    Returns:
        Decisions to commit in this order; after that, nothing is left to decide.
    """
    leaving = _leaving(state)
    decisions: list[Decision] = []
    for job_id, (outcome, reason) in leaving.items():
        number = state.next_decision + len(decisions)
        decisions.append(_leave(state, state.jobs[job_id], number, outcome, reason))
    for lease, (job, units, reason) in enumerate(
        _grants(state, queue, leaving), start=state.next_lease
    ):
        decisions.append(
            Grant(
                id=state.next_decision + len(decisions),
                at=state.at,
                lease=lease_id(lease),
                job=job.id,
                units=units,
                reason=reason,
            )
        )
    return decisions


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


def _grants(
    state: State, queue: Queue, leaving: dict[JobId, tuple[Outcome, str]]
) -> Iterator[tuple[Job, Units, str]]:
    """Walks the queue in order; looks at one job of each bucket that does not fit."""
    free = Free.of(state)
    misfits: dict[Shape, None] = {}
    for priority in PriorityClass:
        heads: list[tuple[Turn, int, list[Turn], Shape]] = [
            (bucket.turns[0], 0, bucket.turns, bucket.shape)
            for bucket in queue.buckets(priority)
            if bucket.owner in state.agents
        ]
        heapify(heads)
        while heads and free.cores > 0:
            turn, position, turns, shape = heads[0]
            if turn.job not in leaving:
                units = None if shape in misfits else placement.place(free, shape)
                if units is None:  # Nor will a later job of this shape: units only get fewer.
                    misfits[shape] = None
                    heappop(heads)
                    continue
                free.take(units)
                yield state.jobs[turn.job], units, _reason(priority, is_passing=bool(misfits))
            position += 1
            if position < len(turns):
                heapreplace(heads, (turns[position], position, turns, shape))
            else:
                heappop(heads)


def _reason(priority: PriorityClass, *, is_passing: bool) -> str:
    if is_passing:
        return f"class {priority}: it fits, and the jobs ahead of it do not yet"
    return f"class {priority}: it is its turn"
