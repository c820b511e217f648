"""Which running jobs give way to a waiting one: the worst standing first, never for nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from workbench.core.job import Job
from workbench.core.model import JobId, Seconds, Shape, Uid
from workbench.core.placement import Pool
from workbench.core.spelling import short_job
from workbench.core.standings import OVERDUE, Runner, Standings
from workbench.core.state import State

_SLACK_S: Final = 1e-6
_STEP_S: Final = 1.0
"""Patience that grows while it is waited for is looked at again after so much at the soonest."""


class Contender(NamedTuple):
    """A waiting job that wants units.

    Attributes:
        job: The job.
        level: Its class as an index, or `OVERDUE`.
        share: Its owner's rank by use.
        score: The policy's, now.
        shapes: What would do for it, the preferred first.
    """

    job: Job
    level: int
    share: int
    score: float
    shapes: tuple[Shape, ...]


class Victims:
    """Finds who gives way, in one round of decisions.

    Args:
        state: The state; it is not changed.
        standings: Where its jobs stand.
        share: Ranks an owner by use.
        spared: Jobs that are on their way out already; those that are found are added.
    """

    def __init__(
        self,
        state: State,
        standings: Standings,
        share: Callable[[Uid], int],
        spared: dict[JobId, None],
    ) -> None:
        self.patient_at: Seconds | None = None
        """When a waiting job will have been patient enough; None if none waits for that."""
        self._state = state
        self._standings = standings
        self._share = share
        self._spared = spared
        self._runners: list[Runner] | None = None

    def of(self, contender: Contender, pool: Pool) -> list[Job]:
        """Chooses who gives way.

        Args:
            contender: Who wants units.
            pool: What is free; it is not changed.

        Returns:
            Jobs whose units, with what is free, are what the contender needs, none of them to
            spare; empty where there are not enough.
        """
        if not self._standings.running:
            return []
        if self._runners is None:
            self._runners = self._standings.runners(self._state)
        shape = contender.shapes[0]  # Nobody gives way for what is not even preferred.
        # A GPU that is shared may have room for one share more although none is free.
        gpus = shape.gpus if shape.share_bytes else pool.free_gpus
        cores, memory = pool.cores, pool.memory_bytes
        chosen: list[Job] = []
        for running in self._candidates(contender, self._runners):
            assert running.grant is not None
            units = running.grant.units
            chosen.append(running)
            gpus += len(units.gpus)
            cores += units.cores
            memory += units.memory_bytes
            if gpus >= shape.gpus and cores >= shape.cores and memory >= shape.memory_bytes:
                needed = _needed(pool, shape, chosen)
                if needed:
                    self._spared |= dict.fromkeys(job.id for job in needed)
                    return needed
        return []

    def would_do(self, shape: Shape, pool: Pool) -> bool:
        """Tells whether a job would fit if all jobs that allow preemption gave way.

        Args:
            shape: What it asks for.
            pool: What is free; it is not changed.
        """
        live = [self._state.jobs[job] for job in self._state.leases.values()]
        return _fits(pool, shape, [job for job in live if job.request.preemption])

    def _candidates(self, contender: Contender, runners: list[Runner]) -> Iterator[Job]:
        """Lists running jobs that stand lower than the contender, the worst first."""
        state, settings = self._state, self._standings.settings
        waiting = contender.job
        own = contender.level
        if own == OVERDUE:
            own = self._standings.level_of(state, waiting)
        preempts = self._standings.policy.preempts
        spared, quantum_s, at = self._spared, settings.quantum_s, state.at
        for level, score, turn in runners:
            if level < own:
                return
            running = state.jobs[turn.job]
            started = running.started_at or 0.0
            # What started at this instant would give way before it did anything.
            if turn.job in spared or started + quantum_s > at or started == at:
                continue
            if level == own and not preempts:
                return
            if level == own and contender.level != OVERDUE:
                patience_s = self._patience_s(contender, running, score)
                if patience_s is None:
                    if settings.fair_share:
                        continue
                    return
                patient_at = waiting.queued_at + patience_s
                if patient_at > state.at + _SLACK_S:
                    self._look_again(patient_at)
                    continue
            yield running

    def _patience_s(self, contender: Contender, running: Job, score: float) -> Seconds | None:
        """Says how long the contender has to wait for this one; None is for ever."""
        policy = self._standings.policy
        theirs = self._share(running.owner)
        if theirs < contender.share:
            return None
        patience_s = policy.patience_s(
            self._state, running, contender.job, score - contender.score, contender.score
        )
        if patience_s is None and theirs > contender.share + 1:
            return self._standings.settings.fair_patience_s
        return patience_s

    def _look_again(self, patient_at: Seconds) -> None:
        at = max(patient_at, self._state.at + _STEP_S)
        if self.patient_at is None or at < self.patient_at:
            self.patient_at = at


def _needed(pool: Pool, shape: Shape, chosen: list[Job]) -> list[Job]:
    """Drops the jobs that need not give way, the best standing first; empty if all are too few."""
    if not _fits(pool, shape, chosen):
        return []
    needed = list(chosen)
    for one in reversed(chosen):
        fewer = [job for job in needed if job is not one]
        if _fits(pool, shape, fewer):
            needed = fewer
    return needed


def _fits(pool: Pool, shape: Shape, leaving: list[Job]) -> bool:
    then = pool.copy()
    for job in leaving:
        assert job.grant is not None
        then.give_back(job.grant.units)
    return then.place(shape) is not None


def reason(winner: Job, victim: Job) -> str:
    """Says to the victim's owner why.

    Args:
        winner: Who gets the units.
        victim: Who gives way.

    Returns:
        One sentence without its full stop.
    """
    if winner.request.priority is not victim.request.priority:
        return f"{short_job(winner.id)} of class {winner.request.priority} needs its units"
    return f"{short_job(winner.id)} stands higher and needs its units"
