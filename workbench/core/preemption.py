"""Which running jobs give way to a waiting one, and how: the mildest step that frees enough.

The rungs of the ladder are tried one after the other: first only what jobs can do without being
stopped, last what throws work away. On a rung the worst standing job gives way first, and at equal
standing the one that loses least. Nobody gives way for nothing: the winner then fits.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from workbench.core.job import Job, served_s, steady_since
from workbench.core.model import JobId, Preemption, Seconds, Shape, Uid
from workbench.core.placement import Pool
from workbench.core.rungs import LADDER, MILD, GivingWay, fits, hardest, needed, softened
from workbench.core.standings import OVERDUE, PLAIN, Standings, Turn
from workbench.core.state import State

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
        self._rungs: list[tuple[Preemption, ...]] = []
        """Those that a running job allows, the mildest first: what is allowed on each, its own step
        and milder ones, the hardest first."""
        self._loses_work = False
        self._unstoppable: dict[JobId, None] = {}
        """Jobs that are nearly done, so that only a step that costs no restart is worth it."""
        self._stoppable: dict[tuple[int, float], list[Job]] = {}
        self._patient_at = _NEVER

    @property
    def patient_at(self) -> Seconds | None:
        """When a waiting job will have been patient enough; None if none waits for that."""
        if self._patient_at == _NEVER:
            return None
        return max(self._patient_at, self._state.at + _STEP_S)

    def of(self, contender: Contender, pool: Pool) -> list[GivingWay]:
        """Chooses who gives way.

        Args:
            contender: Who wants units.
            pool: What is free; it is not changed.

        Returns:
            Steps that free, with what is free, what the contender needs, none of them to spare;
            empty where there are not enough.
        """
        if not self._standings.running:
            return []
        if self._runners is None:
            self._line_up()
        is_plain = not self._standings.ladders
        for steps in self._rungs:
            if is_plain:
                found = self._plain(contender, pool)
            else:
                found = self._on_rung(contender, pool, steps)
            if found:
                for one in found:
                    self.spare(one.job.id)
                return found
        return []

    def spare(self, job: JobId) -> None:
        """Leaves a job alone for the rest of the round.

        Args:
            job: One that is on its way out, or goes on right now.
        """
        self._spared[job] = None
        self._stoppable.clear()

    def would_do(self, shape: Shape, pool: Pool) -> bool:
        """Tells whether a job would fit if all jobs that allow preemption gave way.

        Args:
            shape: What it asks for.
            pool: What is free; it is not changed.
        """
        allowed = self._standings.settings.steps
        steps = tuple(step for step in reversed(LADDER) if step in allowed)
        live = [self._state.jobs[job] for job in self._state.leases.values()]
        giving = [hardest(job, steps, shape, pool) for job in live if job.request.preemption]
        return fits(pool, shape, [one for one in giving if one is not None])

    def _line_up(self) -> None:
        """Lists who runs, the worst standing first, and finds the rungs that there are."""
        standings, allowed = self._standings, self._standings.settings.steps
        self._runners = standings.runners(self._state)
        ladders = standings.ladders
        if not ladders:
            self._rungs = [PLAIN] if PLAIN[0] in allowed else []
            return
        asked = {step: None for ladder in ladders for step in ladder}
        if sum(ladders.values()) < sum(map(len, standings.running.values())):
            asked |= dict.fromkeys(PLAIN)
        hardest_first: tuple[Preemption, ...] = ()
        for step in LADDER:
            if step in asked and step in allowed:
                hardest_first = (step, *hardest_first)
                self._rungs.append(hardest_first)
        self._loses_work = Preemption.REQUEUE in asked

    def _on_rung(
        self, contender: Contender, pool: Pool, steps: tuple[Preemption, ...]
    ) -> list[GivingWay]:
        """Chooses among the steps up to one rung."""
        shape = contender.shapes[0]  # Nobody gives way for what is not even preferred.
        # A GPU that is shared may have room for one share more although none is free.
        gpus = shape.gpus if shape.share_bytes else pool.free_gpus
        cores, memory = pool.cores, pool.memory_bytes
        chosen: list[GivingWay] = []
        for running in self._candidates(contender):
            is_kept = running.id in self._unstoppable
            allowed = tuple(step for step in steps if step in MILD) if is_kept else steps
            one = hardest(running, allowed, shape, pool)
            if one is None:
                continue
            units = one.units
            chosen.append(one)
            gpus += len(units.gpus)
            cores += units.cores
            memory += units.memory_bytes
            if gpus >= shape.gpus and cores >= shape.cores and memory >= shape.memory_bytes:
                found = needed(pool, shape, chosen)
                if found:
                    return softened(found, steps, shape, pool)
        return []

    def _plain(self, contender: Contender, pool: Pool) -> list[GivingWay]:
        """Chooses among jobs of which all give way alike."""
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
                giving = [GivingWay(job, PLAIN[0], job.grant.units) for job in chosen if job.grant]
                found = needed(pool, shape, giving)
                if found:
                    return found
        return []

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
        until = nearly_done_until(
            running, self._state.at, self._standings.settings.restart_s, is_weighed=is_weighed
        )
        if until is None:
            return False
        self._patient_at = min(self._patient_at, until)
        if MILD.isdisjoint(running.request.preemption):
            return True
        self._unstoppable[running.id] = None
        return False

    def _stoppable_of(self, turns: list[Turn]) -> list[Job]:
        """Lists those that are not on their way out, the worst standing first."""
        state, spared = self._state, self._spared
        running = [state.jobs[turn.job] for turn in reversed(turns) if turn.job not in spared]
        # What started at this instant would give way before it did anything.
        found = [
            job
            for job in running
            if (job.started_at if job.ladder is None else steady_since(job)) != state.at
        ]
        if self._loses_work:
            found.sort(key=self._lost_s)
        return found

    def _lost_s(self, job: Job) -> Seconds:
        """Says how much work is thrown away if a job gives way by its mildest stop."""
        if Preemption.CHECKPOINT in job.request.preemption or job.grant is None:
            return 0.0
        return min(served_s(job, self._state.at), self._state.at - job.grant.at)


def nearly_done_until(
    job: Job, at: Seconds, restart_s: Seconds, *, is_weighed: bool
) -> Seconds | None:
    """Says until when a running job is left alone, since it is forecast to be done by then.

    To make it give way would cost more than it gives. A forecast that was wrong protects nobody any
    longer than it said.

    Args:
        job: A running job.
        at: Now.
        restart_s: What a restart is reckoned to cost; 0 to leave nobody alone.
        is_weighed: Whether what was declared is weighed elsewhere, so that progress alone counts.

    Returns:
        A time after now; None where nothing says that it is nearly done, or it stands still.
    """
    if job.started_at is None:
        return None
    since = None if job.progress is None else job.progress.nearly_done_from
    if since is not None and since <= at < since + restart_s:
        return since + restart_s
    if is_weighed:
        return None
    served = served_s(job, at)
    spans = (job.request.expected_s, job.request.time_limit_s)
    left = [span - served for span in spans if span is not None]
    return next((at + left_s for left_s in left if 0.0 < left_s <= restart_s), None)
