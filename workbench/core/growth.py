"""Which jobs that were shrunk get GPUs back: those that nobody who waits could use."""

from __future__ import annotations

from collections.abc import Container

from workbench.core.decisions import Grow
from workbench.core.job import Job
from workbench.core.model import DeviceId, JobId, Units
from workbench.core.placement import Pool, shape_of
from workbench.core.standings import Standings
from workbench.core.state import State


def growths(
    state: State, standings: Standings, pool: Pool, gone: Container[JobId], number: int
) -> list[Grow]:
    """Proposes what shrunk jobs get back.

    A GPU is given back only while nobody whose agent is there waits for one: a gang that needs
    more than are free would wait for it again.

    Args:
        state: The state; it is not changed.
        standings: Where its jobs stand.
        pool: What is left once waiting jobs got what they get now; changed in place.
        gone: Jobs that start now, and those on their way out.
        number: The id of the first decision.

    Returns:
        Decisions, in the order in which jobs stand.
    """
    if _is_gpu_wanted(state, standings, gone):
        return []
    found: list[Grow] = []
    for job in _in_order(state, standings, gone):
        gpus = _more_for(job, pool)
        if gpus and job.grant is not None:
            pool.take(Units(gpus=gpus))
            found.append(
                Grow(
                    id=number + len(found),
                    at=state.at,
                    lease=job.grant.lease,
                    job=job.id,
                    gpus=gpus,
                    reason="no waiting job can use them",
                )
            )
    return found


def _is_gpu_wanted(state: State, standings: Standings, gone: Container[JobId]) -> bool:
    for shapes in standings.waiting:
        for shape, queues in shapes.items():
            if not shape.gpus:
                continue
            for (_, owner), turns in queues.items():
                if owner in state.agents and any(turn.job not in gone for turn in turns):
                    return True
    return False


def _in_order(state: State, standings: Standings, gone: Container[JobId]) -> list[Job]:
    shrunk = [state.jobs[job] for job in state.shrunk if job not in gone]
    ready = [job for job in shrunk if job.owner in state.agents and job.ladder]
    ready = [job for job in ready if job.ladder and job.ladder.pending is None]
    ready.sort(key=lambda job: (standings.level_of(state, job), job.number))
    return ready


def _more_for(job: Job, pool: Pool) -> tuple[DeviceId, ...]:
    if job.grant is None or job.ladder is None:
        return ()
    return pool.beside(job.grant.units.gpus, shape_of(job.request), len(job.ladder.granted.gpus))
