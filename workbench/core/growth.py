"""Which jobs that were shrunk get GPUs back: those that nobody who waits could use."""

from __future__ import annotations

from collections.abc import Container

from workbench.core.decisions import Grow
from workbench.core.job import Job
from workbench.core.model import DeviceId, JobId, Units
from workbench.core.placement import shapes_of
from workbench.core.round import Round
from workbench.core.standings import Standings
from workbench.core.state import State


def growths(state: State, standings: Standings, round_: Round, number: int) -> list[Grow]:
    """Proposes what shrunk jobs get back.

    A GPU is given back only while nobody whose agent is there waits for one: a gang that needs
    more than are free would wait for it again. Who is held back by a limit does not wait for GPUs.

    Args:
        state: The state; it is not changed.
        standings: Where its jobs stand.
        round_: The round in which waiting jobs got what they get now; it takes what is given back.
        number: The id of the first decision.

    Returns:
        Decisions, in the order in which jobs stand.
    """
    if _is_gpu_wanted(state, standings, round_):
        return []
    found: list[Grow] = []
    for job in _in_order(state, standings, round_.gone):
        gpus = _more_for(job, round_)
        if gpus and job.grant is not None:
            round_.grow(job, Units(gpus=gpus))
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


def _is_gpu_wanted(state: State, standings: Standings, round_: Round) -> bool:
    for places in standings.waiting:
        for shapes, tiers in places.items():
            if not any(shape.gpus for shape in shapes):
                continue
            for accounts in tiers.values():
                for account, turns in accounts.items():
                    if account.owner not in state.agents:
                        continue
                    allowed = round_.limits.allowed(account, shapes)
                    if any(shape.gpus for shape in allowed) and any(
                        turn.job not in round_.gone for turn in turns
                    ):
                        return True
    return False


def _in_order(state: State, standings: Standings, gone: Container[JobId]) -> list[Job]:
    shrunk = [state.jobs[job] for job in state.shrunk if job not in gone]
    ready = [job for job in shrunk if job.owner in state.agents and job.ladder]
    ready = [job for job in ready if job.ladder and job.ladder.pending is None]
    ready.sort(key=lambda job: (standings.level_of(state, job), job.number))
    return ready


def _more_for(job: Job, round_: Round) -> tuple[DeviceId, ...]:
    if job.grant is None or job.ladder is None:
        return ()
    has, granted = job.grant.units.gpus, len(job.ladder.granted.gpus)
    most = len(has) + round_.limits.room_to_grow(job, granted - len(has))
    pool = round_.left_for(job)
    choices = (
        pool.beside(has, shape, most) for shape in shapes_of(job.request) if shape.gpus == granted
    )
    return next((gpus for gpus in choices if gpus), ())
