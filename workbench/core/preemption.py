"""Which running jobs give way to a waiting one: the worst standing first, never for nothing."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from workbench.core.history import RESTART_S
from workbench.core.job import Job, served_s
from workbench.core.model import JobId, Seconds, Shape, Uid
from workbench.core.placement import Pool
from workbench.core.spelling import short_job
from workbench.core.standings import OVERDUE, Standings, Turn
from workbench.core.state import State

NEARLY_DONE_S: Final = RESTART_S
"""A job that is forecast to be done within this gives way to nobody: it would cost more than it
gives."""
_SLACK_S: Final = 1e-6
_NEVER: Final = float("inf")
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
        shares: Ranks owners by use.
        spared: Jobs that are on their way out already; those that are found are added.
    """

    def __init__(
        self,
        state: State,
        standings: Standings,
        shares: dict[Uid, int],
        spared: dict[JobId, None],
    ) -> None:
        self._state = state
        self._standings = standings
        self._shares = shares
        self._spared = spared
        self._runners: list[tuple[tuple[int, float], list[Turn]]] | None = None
        self._stoppable: dict[tuple[int, float], list[Job]] = {}
        self._patient_at = _NEVER

    @property
    def patient_at(self) -> Seconds | None:
        """When a waiting job will have been patient enough; None if none waits for that."""
        if self._patient_at == _NEVER:
            return None
        return max(self._patient_at, self._state.at + _STEP_S)

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
        shape = contender.shapes[0]  # Nobody gives way for what is not even preferred.
        # A GPU that is shared may have room for one share more although none is free.
        gpus = shape.gpus if shape.share_bytes else pool.free_gpus
        cores, memory = pool.cores, pool.memory_bytes
        chosen: list[Job] = []
        for running in self._candidates(contender):
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
                    self._stoppable.clear()
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

    def _candidates(self, contender: Contender) -> Iterator[Job]:
        """Lists running jobs that stand lower than the contender, the worst first."""
        state, standings = self._state, self._standings
        own = contender.level
        if own == OVERDUE:
            own = standings.level_of(state, contender.job)
        if self._runners is None:
            self._runners = standings.runners(state)
        for rank, turns in self._runners:
            level, score = rank
            if level < own or (level == own and not standings.policy.preempts):
                return
            stoppable = self._stoppable.get(rank)
            if stoppable is None:
                stoppable = self._stoppable[rank] = self._stoppable_of(turns)
            if level > own or contender.level == OVERDUE:
                is_weighed = level == own and standings.policy.asks_run_times
                for running in stoppable:
                    if not self._is_nearly_done(running, is_weighed=is_weighed):
                        yield running
            elif not (yield from self._outwaited(contender, stoppable, score)):
                return

    def _outwaited(
        self, contender: Contender, stoppable: list[Job], score: float
    ) -> Generator[Job, None, bool]:
        """Lists those that the contender has waited for long enough; says whether to go on."""
        state, settings, shares = self._state, self._standings.settings, self._shares
        patience_of = self._standings.policy.patience_s
        job, _, share, own_score, _ = contender
        lead, at = score - own_score - share, state.at + _SLACK_S
        is_weighed = self._standings.policy.asks_run_times
        for running in stoppable:
            theirs = shares[running.owner]
            gap = lead + theirs  # Between both by `fairness.rank`.
            if gap < 0:
                if not settings.fair_share:
                    return False
                continue
            patience_s = patience_of(state, running, job, gap, own_score)
            if patience_s is None:
                if not settings.fair_share:
                    return False
                if theirs <= share + 1:
                    continue
                patience_s = settings.fair_patience_s
            patient_at = job.queued_at + patience_s
            if patient_at <= at:
                if not self._is_nearly_done(running, is_weighed=is_weighed):
                    yield running
            elif patient_at < self._patient_at:
                self._patient_at = patient_at
        return True

    def _is_nearly_done(self, running: Job, *, is_weighed: bool) -> bool:
        """Tells whether a job is left alone for now; notes when it no longer is.

        A policy that orders by run times weighs those in its classes itself.
        """
        request = running.request
        if running.progress is None and request.expected_s is None and request.time_limit_s is None:
            return False
        until = nearly_done_until(running, self._state.at, is_weighed=is_weighed)
        if until is not None:
            self._patient_at = min(self._patient_at, until)
        return until is not None

    def _stoppable_of(self, turns: list[Turn]) -> list[Job]:
        """Lists those that are not on their way out, the worst standing first."""
        state, spared = self._state, self._spared
        running = [state.jobs[turn.job] for turn in reversed(turns) if turn.job not in spared]
        # What started at this instant would give way before it did anything.
        return [job for job in running if job.started_at != state.at]


def nearly_done_until(job: Job, at: Seconds, *, is_weighed: bool) -> Seconds | None:
    """Says until when a running job is left alone, since it is forecast to be done by then.

    A forecast that was wrong protects nobody any longer than it said.

    Args:
        job: A running job.
        at: Now.
        is_weighed: Whether what was declared is weighed elsewhere, so that progress alone counts.

    Returns:
        A time after now; None where nothing says that it is nearly done.
    """
    since = None if job.progress is None else job.progress.nearly_done_from
    if since is not None and since <= at < since + NEARLY_DONE_S:
        return since + NEARLY_DONE_S
    if is_weighed:
        return None
    served = served_s(job, at)
    spans = (job.request.expected_s, job.request.time_limit_s)
    left = [span - served for span in spans if span is not None]
    return next((at + left_s for left_s in left if 0.0 < left_s <= NEARLY_DONE_S), None)


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
    use = victim.use
    if use is not None and use.lowered is not None:
        return f"{short_job(winner.id)} needs its units, and {use.lowered.reason}"
    if winner.request.priority is not victim.request.priority:
        return f"{short_job(winner.id)} of class {winner.request.priority} needs its units"
    return f"{short_job(winner.id)} stands higher and needs its units"
