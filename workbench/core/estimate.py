"""When waiting jobs start: between all jobs ending as soon, and as late, as they may."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from workbench.core.job import Job, served_s
from workbench.core.model import JobId, JobState, Seconds, Shape, Units
from workbench.core.placement import Pool, shapes_wanted
from workbench.core.quotas import Account, Limits
from workbench.core.spelling import short_job
from workbench.core.state import THIS_HOST, State, expected_end

LOOK_AHEAD_JOBS = 100
"""Of how many waiting jobs the start is estimated; behind them it is too uncertain to say."""

_NEVER: Final = float("inf")
_ASSUMED = "if no job runs longer than its time limit and no other job comes in ahead"

_BOOKED = "unknown: GPUs are booked by then"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """When a job likely starts, as a range in seconds from now.

    Attributes:
        low_s: The soonest; None is unknown.
        high_s: The latest if what `reason` assumes holds; None is unknown.
        reason: What the range rests on, or why its end is unknown.
    """

    low_s: Seconds | None
    high_s: Seconds | None
    reason: str


class _Ending(NamedTuple):
    """When a lease ends at the latest, in seconds from now."""

    in_s: Seconds
    number: int
    units: Units


class _Waiter(NamedTuple):
    """A waiting job, and what would do for it."""

    job: Job
    shapes: tuple[Shape, ...]


def estimate(state: State, limits: Limits, order: list[Job]) -> dict[JobId, Estimate]:
    """Plays the queue forward, greedily as `decide` does.

    Args:
        state: The state; it is not changed.
        limits: What may start in it.
        order: All waiting jobs in the order in which they are considered.

    Returns:
        An estimate for each of them.
    """
    estimates: dict[JobId, Estimate] = {}
    startable: list[_Waiter] = []
    for job in order:
        allowed = limits.allowed(Account.of(job), shapes_wanted(job))
        why_not = _why_not_startable(state, job) if allowed else "it is held back by a limit"
        if why_not:
            estimates[job.id] = Estimate(low_s=None, high_s=None, reason=f"unknown: {why_not}")
        else:
            startable.append(_Waiter(job, allowed))
    near = startable[:LOOK_AHEAD_JOBS]
    soonest, latest = _play(state, near, _soonest_s), _play(state, near, _latest_s)
    far = f"unknown: at least {LOOK_AHEAD_JOBS} jobs are ahead of it"
    for ahead, (job, _) in enumerate(startable):
        high_s = latest.get(job.id)
        if high_s is not None and state.bookings and _is_booked_before(state, job, high_s):
            estimates[job.id] = Estimate(low_s=0.0, high_s=None, reason=_BOOKED)
            continue
        if high_s is not None:
            reason = _ASSUMED
        else:
            reason = far if ahead >= LOOK_AHEAD_JOBS else f"unknown: {_why_never(state, job)}"
        low_s = min(soonest.get(job.id, 0.0), _NEVER if high_s is None else high_s)
        estimates[job.id] = Estimate(low_s=low_s, high_s=high_s, reason=reason)
    return estimates


def latest_with(state: State, order: list[Job], job: Job, shape: Shape) -> Seconds | None:
    """Says when a waiting job would start at the latest if it asked for something else.

    Args:
        state: The state; it is not changed.
        order: All waiting jobs in the order in which they are considered.
        job: One of them.
        shape: What it would ask for.

    Returns:
        Seconds from now; None is unknown.
    """
    near = [one for one in order if not _why_not_startable(state, one)][:LOOK_AHEAD_JOBS]
    if job not in near:
        return None
    waiting = [
        _Waiter(one, (shape,) if one is job else shapes_wanted(one))
        for one in near[: near.index(job) + 1]
    ]
    return _play(state, waiting, _latest_s).get(job.id)


def _why_not_startable(state: State, job: Job) -> str:
    if job.owner not in state.agents:
        return "its agent is not running"
    if job.request.gpus and job.grant is None and state.held is not None:
        return "no GPU is handed out now"
    if THIS_HOST in state.drained:
        return "this host is drained"
    return ""


def _is_booked_before(state: State, job: Job, start_s: Seconds) -> bool:
    """Whether a booking of others may be in the way of a job when it would start, or before."""
    until = state.at + start_s + (job.request.time_limit_s or 0.0)
    return job.request.gpus > 0 and any(
        one.start_at <= until and not one.is_released
        for one in state.bookings.values()
        if one.booking.owner != job.owner
    )


def _latest_s(state: State, job: Job) -> Seconds | None:
    """Says how long a lease lasts at most, from now; None if nothing bounds it."""
    limit_s = job.request.time_limit_s
    if limit_s is None or job.state in {JobState.PREEMPTING, JobState.STOPPING}:
        return None
    return max(limit_s - served_s(job, state.at), 0.0)


def _soonest_s(state: State, job: Job) -> Seconds | None:
    """Says how long a lease lasts at least, from now, as far as anybody said."""
    if job.state in {JobState.PREEMPTING, JobState.STOPPING} or job.request.expected_s is None:
        return 0.0
    end = expected_end(state, job)
    return 0.0 if end is None else end - state.at


def _why_never(state: State, job: Job) -> str:
    """Names a lease that may last for ever; one that holds a GPU for a job that needs one."""
    live = [state.jobs[holder] for holder in state.leases.values()]
    endless = [holder for holder in live if _latest_s(state, holder) is None]
    endless.sort(key=lambda holder: min(holder.request.gpus, 1) != min(job.request.gpus, 1))
    for holder in endless:
        if holder.grant is not None:
            is_stopping = holder.state in {JobState.PREEMPTING, JobState.STOPPING}
            why = "is being stopped" if is_stopping else "has no time limit"
            return f"{short_job(holder.id)} {why}"
    return "a job ahead has no time limit, or units are out of service"


def _play(
    state: State, waiting: list[_Waiter], lasts_s: Callable[[State, Job], Seconds | None]
) -> dict[JobId, Seconds]:
    """Starts waiting jobs as units come free; those that never start are left out."""
    free = Pool.of(state)
    live = [state.jobs[job] for job in state.leases.values() if job not in state.suspended]
    endings = [
        _Ending(in_s, job.number, job.grant.units)
        for job in live
        if job.grant and (in_s := lasts_s(state, job)) is not None
    ]
    heapify(endings)
    starts: dict[JobId, Seconds] = {}
    now_s = 0.0
    while True:
        left: list[_Waiter] = []
        misfits: dict[Shape, None] = {}
        for waiter in waiting:
            units = _place(free, waiter.shapes, misfits)
            if units is None:
                left.append(waiter)
                continue
            free.take(units)
            if waiter.job.grant is not None:  # A suspended one then gives back what it kept, too.
                units = replace(waiter.job.grant.units, cores=units.cores)
            starts[waiter.job.id] = now_s
            in_s = lasts_s(state, waiter.job)
            if in_s is not None:
                heappush(endings, _Ending(now_s + in_s, waiter.job.number, units))
        waiting = left
        if not waiting or not endings:
            return starts
        now_s = endings[0].in_s
        while endings and endings[0].in_s <= now_s:
            free.give_back(heappop(endings).units)


def _place(free: Pool, shapes: tuple[Shape, ...], misfits: dict[Shape, None]) -> Units | None:
    for shape in shapes:
        units = None if shape in misfits else free.place(shape)
        if units is not None:
            return units
        misfits[shape] = None
    return None
