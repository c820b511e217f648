"""What running jobs can do for a waiting one, from the mildest step to the hardest."""

from __future__ import annotations

from typing import Final, NamedTuple

from workbench.core.job import Job
from workbench.core.model import DeviceId, JobState, Preemption, Shape, Units
from workbench.core.placement import Pool, shapes_of

LADDER: Final = tuple(Preemption)
"""All steps, the mildest first."""
MILD: Final = frozenset({Preemption.SHRINK, Preemption.SUSPEND})
"""What leaves a job its lease."""


class GivingWay(NamedTuple):
    """What a job could do for a waiting one.

    Attributes:
        job: The job.
        step: How it gives way.
        units: What comes free.
    """

    job: Job
    step: Preemption
    units: Units


def hardest(job: Job, steps: tuple[Preemption, ...], shape: Shape, pool: Pool) -> GivingWay | None:
    """Finds the step that frees most.

    Args:
        job: A running job.
        steps: What to try, the hardest first.
        shape: What the winner asks for.
        pool: What is free.

    Returns:
        None where none frees anything that is wanted.
    """
    allowed = job.request.preemption
    for step in steps:
        if step in allowed:
            is_mild = step in MILD
            units = _freed_mildly(job, step, shape, pool) if is_mild else _freed_by_stop(job)
            if units is not None:
                return GivingWay(job, step, units)
    return None


def softened(
    chosen: list[GivingWay], steps: tuple[Preemption, ...], shape: Shape, pool: Pool
) -> list[GivingWay]:
    """Takes for each job the mildest step that still frees enough, the best standing first.

    Args:
        chosen: Who gives way, none of them to spare.
        steps: The steps of the rung, the hardest first.
        shape: What the winner asks for.
        pool: What is free.
    """
    for at in reversed(range(len(chosen))):
        for step in reversed(steps):
            if step is chosen[at].step:
                break
            milder = hardest(chosen[at].job, (step,), shape, pool)
            softer = [*chosen[:at], milder, *chosen[at + 1 :]] if milder else []
            if softer and fits(pool, shape, softer):
                chosen = softer
                break
        if chosen[at].step is Preemption.SHRINK:
            chosen = _with_fewer_gpus(chosen, at, shape, pool)
    return chosen


def _freed_by_stop(job: Job) -> Units:
    """What comes free when a job is stopped, without what it gives to another one already."""
    assert job.grant is not None
    units = job.grant.units
    shrink = job.ladder.shrink if job.ladder is not None else None
    if shrink is None:
        return units
    left = tuple(gpu for gpu in units.gpus if gpu not in shrink.gpus)
    return Units(gpus=left, cores=units.cores, memory_bytes=units.memory_bytes)


def _freed_mildly(job: Job, step: Preemption, shape: Shape, pool: Pool) -> Units | None:
    """What comes free by a step that leaves a job its lease; None for nothing that is wanted."""
    assert job.grant is not None
    if job.state is not JobState.RUNNING or (job.ladder and job.ladder.pending):
        return None
    units = job.grant.units
    if step is Preemption.SUSPEND:
        # One with GPUs would keep them and do nothing with them.
        return Units(cores=units.cores) if not units.gpus and pool.cores < shape.cores else None
    if units.share_bytes or any(one.mig for one in shapes_of(job.request)):
        return None  # Neither shares nor slices are given back one by one.
    spare = len(units.gpus) - (job.request.min_gpus or len(units.gpus))
    suited: list[DeviceId] = [gpu for gpu in units.gpus if pool.suits(gpu, shape)]
    return Units(gpus=tuple(suited[-spare:])) if shape.gpus and spare > 0 and suited else None


def needed(pool: Pool, shape: Shape, chosen: list[GivingWay]) -> list[GivingWay]:
    """Drops the jobs that need not give way, the best standing first.

    Args:
        pool: What is free.
        shape: What the winner asks for.
        chosen: Who may give way, the worst standing first.

    Returns:
        Empty if all are too few.
    """
    if not fits(pool, shape, chosen):
        return []
    left = list(chosen)
    for one in reversed(chosen):
        fewer = [other for other in left if other is not one]
        if fits(pool, shape, fewer):
            left = fewer
    return left


def _with_fewer_gpus(chosen: list[GivingWay], at: int, shape: Shape, pool: Pool) -> list[GivingWay]:
    """Leaves a shrinking job the GPUs that the winner can do without."""
    for gpu in chosen[at].units.gpus:
        one = chosen[at]
        left = Units(gpus=tuple(other for other in one.units.gpus if other != gpu))
        fewer = [*chosen[:at], one._replace(units=left), *chosen[at + 1 :]]
        if fits(pool, shape, fewer):
            chosen = fewer
    return chosen


def fits(pool: Pool, shape: Shape, giving: list[GivingWay]) -> bool:
    """Tells whether a shape fits once all have given way.

    Args:
        pool: What is free; it is not changed.
        shape: What the winner asks for.
        giving: Who gives way.
    """
    then = pool.copy()
    for one in giving:
        then.give_back(one.units)
    return then.place(shape) is not None
