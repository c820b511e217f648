"""Where a job is filed in the state: by id, and by the times at which time alone changes it."""

from __future__ import annotations

from bisect import bisect_left, insort

from workbench.core.history import EDGES_S, size_class
from workbench.core.job import Deadline, Job, crossing_of, deadline_of, evolve, is_shrunk
from workbench.core.model import JobState
from workbench.core.state import ENDED_JOBS_KEPT, State


def put(state: State, job: Job, *, before: Job | None) -> None:
    """Replaces a job and keeps what is sorted by time and the list of ended jobs in step.

    Args:
        state: Changed in place.
        job: As it is from now on.
        before: As it was; None for a new one.
    """
    _move(state.deadlines, deadline_of(before) if before else None, deadline_of(job))
    _move(state.crossings, crossing_of(before) if before else None, crossing_of(job))
    if job.ladder is not None or (before is not None and before.ladder is not None):
        _file_ladder(state, job)
    if job.state is not JobState.ENDED:
        state.jobs[job.id] = job
        return
    state.jobs.pop(job.id, None)
    state.ended[job.id] = job
    if len(state.ended) > ENDED_JOBS_KEPT:
        del state.ended[next(iter(state.ended))]


def _file_ladder(state: State, job: Job) -> None:
    state.suspended.pop(job.id, None)
    state.shrunk.pop(job.id, None)
    if job.state is JobState.SUSPENDED:
        state.suspended[job.id] = None
    elif job.state is JobState.RUNNING and is_shrunk(job):
        state.shrunk[job.id] = None


def _move(times: list[Deadline], old: Deadline | None, new: Deadline | None) -> None:
    if old != new:
        if old:
            del times[bisect_left(times, old)]
        if new:
            insort(times, new)


def cross(state: State, job: Job) -> Job:
    """Brings a running job to its next level of service.

    Args:
        state: Changed in place.
        job: A job that has reached it.

    Returns:
        The job as it is then.
    """
    crossed = crossing_of(job)
    if crossed is None:
        return job
    width_s = EDGES_S[job.level] - (EDGES_S[job.level - 1] if job.level else 0.0)
    state.history.observe(size_class(job.request.gpus), job.level, width_s, has_ended=False)
    after = evolve(job, level=job.level + 1, entered_at=crossed.at)
    put(state, after, before=job)
    return after
