"""When waiting jobs start if every job takes all the time that it may."""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from workbench.core.job import Job
from workbench.core.model import JobId, JobState, Seconds, Shape, Units
from workbench.core.placement import Pool, shape_wanted
from workbench.core.spelling import short_job
from workbench.core.state import State

LOOK_AHEAD_JOBS = 100
"""Of how many waiting jobs the start is estimated; behind them it is too uncertain to say."""

_ASSUMED = "if all jobs use their whole time limits and no other job comes in ahead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """When a job likely starts, as a range in seconds from now.

    Attributes:
        low_s: The soonest; None is unknown.
        high_s: The latest if what `reason` assumes holds; None is unknown.
        reason: What the range rests on, or why it is unknown.
    """

    low_s: Seconds | None
    high_s: Seconds | None
    reason: str


class _Ending(NamedTuple):
    """When a lease ends at the latest, in seconds from now."""

    in_s: Seconds
    number: int
    units: Units


def estimate(state: State, order: list[Job]) -> dict[JobId, Estimate]:
    """Plays the queue forward, greedily as `decide` does.

    Args:
        state: The state; it is not changed.
        order: All waiting jobs in the order in which they are considered.

    Returns:
        An estimate for each of them.
    """
    estimates: dict[JobId, Estimate] = {}
    startable: list[Job] = []
    for job in order:
        why_not = _why_not_startable(state, job)
        if why_not:
            estimates[job.id] = Estimate(low_s=None, high_s=None, reason=f"unknown: {why_not}")
        else:
            startable.append(job)
    starts = _play(state, startable[:LOOK_AHEAD_JOBS])
    far = f"unknown: at least {LOOK_AHEAD_JOBS} jobs are ahead of it"
    for ahead, job in enumerate(startable):
        high_s = starts.get(job.id)
        if high_s is not None:
            reason = _ASSUMED
        else:
            reason = far if ahead >= LOOK_AHEAD_JOBS else f"unknown: {_why_never(state, job)}"
        estimates[job.id] = Estimate(low_s=0.0, high_s=high_s, reason=reason)
    return estimates


def _why_not_startable(state: State, job: Job) -> str:
    if job.owner not in state.agents:
        return "its agent is not running"
    if job.request.gpus and state.held is not None:
        return "no GPU is handed out now"
    return ""


def _remaining_s(state: State, job: Job) -> Seconds | None:
    """Says how long a job's lease lasts at most; None if nothing bounds it."""
    limit_s = job.request.time_limit_s
    if limit_s is None or job.state in {JobState.PREEMPTING, JobState.STOPPING}:
        return None
    return (
        (state.at if job.started_at is None else job.started_at) + limit_s - job.served_s - state.at
    )


def _why_never(state: State, job: Job) -> str:
    """Names a lease that may last for ever; one that holds a GPU for a job that needs one."""
    live = [state.jobs[holder] for holder in state.leases.values()]
    endless = [holder for holder in live if _remaining_s(state, holder) is None]
    endless.sort(key=lambda holder: min(holder.request.gpus, 1) != min(job.request.gpus, 1))
    for holder in endless:
        if holder.grant is not None:
            is_stopping = holder.state in {JobState.PREEMPTING, JobState.STOPPING}
            why = "is being stopped" if is_stopping else "has no time limit"
            return f"{short_job(holder.id)} {why}"
    return "a job ahead has no time limit, or units are out of service"


def _play(state: State, waiting: list[Job]) -> dict[JobId, Seconds]:
    """Starts waiting jobs as units come free; those that never start are left out."""
    free = Pool.of(state)
    live = [state.jobs[job] for job in state.leases.values() if job not in state.suspended]
    endings = [
        _Ending(remaining_s, job.number, job.grant.units)
        for job in live
        if job.grant and (remaining_s := _remaining_s(state, job)) is not None
    ]
    heapify(endings)
    starts: dict[JobId, Seconds] = {}
    now_s = 0.0
    while True:
        waiting = _start(free, waiting, now_s, starts, endings)
        if not waiting or not endings:
            return starts
        now_s = endings[0].in_s
        while endings and endings[0].in_s <= now_s:
            free.give_back(heappop(endings).units)


def _start(
    free: Pool,
    waiting: list[Job],
    now_s: Seconds,
    starts: dict[JobId, Seconds],
    endings: list[_Ending],
) -> list[Job]:
    """Starts what fits; returns what does not."""
    left: list[Job] = []
    misfits: dict[Shape, None] = {}
    for job in waiting:
        shape = shape_wanted(job)
        units = None if shape in misfits else free.place(shape)
        if units is None:
            misfits[shape] = None
            left.append(job)
            continue
        free.take(units)
        starts[job.id] = now_s
        if job.request.time_limit_s is not None:
            in_s = now_s + job.request.time_limit_s
            if job.grant is not None:  # A suspended one goes on, and then gives back what it kept.
                in_s -= job.served_s
                units = replace(job.grant.units, cores=units.cores)
            heappush(endings, _Ending(in_s, job.number, units))
    return left
