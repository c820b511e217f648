"""Which running jobs give way to a waiting one, and how: the mildest step that frees enough.

The rungs of the ladder are tried one after the other: first only what jobs can do without being
stopped, last what throws work away. On a rung the worst standing job gives way first, and at equal
standing the one that loses least. Nobody gives way for nothing: the winner then fits.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from workbench.core import fairness
from workbench.core.job import Job, served_s, steady_since
from workbench.core.model import DeviceId, JobId, JobState, Preemption, Seconds, Shape, Uid, Units
from workbench.core.placement import Pool, shapes_of
from workbench.core.standings import OVERDUE, PLAIN, Standings, Turn
from workbench.core.state import State

_SLACK_S: Final = 1e-6
_NEVER: Final = float("inf")
_STEP_S: Final = 1.0
"""Patience that grows while it is waited for is looked at again after so much at the soonest."""
LADDER: Final = tuple(Preemption)
_MILD: Final = frozenset({Preemption.SHRINK, Preemption.SUSPEND})


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
        for steps in self._rungs:
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
        giving = [_hardest(job, steps, shape, pool) for job in live if job.request.preemption]
        return _fits(pool, shape, [one for one in giving if one is not None])

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
        is_plain = not self._standings.ladders
        chosen: list[GivingWay] = []
        for running in self._candidates(contender):
            assert running.grant is not None
            if is_plain:
                one = GivingWay(running, PLAIN[0], running.grant.units)
            else:
                is_kept = running.id in self._unstoppable
                allowed = tuple(step for step in steps if step in _MILD) if is_kept else steps
                found = _hardest(running, allowed, shape, pool)
                if found is None:
                    continue
                one = found
            units = one.units
            chosen.append(one)
            gpus += len(units.gpus)
            cores += units.cores
            memory += units.memory_bytes
            if gpus >= shape.gpus and cores >= shape.cores and memory >= shape.memory_bytes:
                needed = _needed(pool, shape, chosen)
                if needed:
                    return needed if is_plain else _softened(needed, steps, shape, pool)
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
        own, at = fairness.rank(own_score, share), state.at + _SLACK_S
        is_weighed = self._standings.policy.asks_run_times
        for running in stoppable:
            theirs = shares[running.owner]
            gap = fairness.rank(score, theirs) - own
            if gap < 0:
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
        if _MILD.isdisjoint(running.request.preemption):
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


def _hardest(job: Job, steps: tuple[Preemption, ...], shape: Shape, pool: Pool) -> GivingWay | None:
    """Finds the step that frees most; None where none frees anything that is wanted."""
    allowed = job.request.preemption
    for step in steps:
        if step in allowed:
            is_mild = step in _MILD
            units = _freed_mildly(job, step, shape, pool) if is_mild else _freed_by_stop(job)
            if units is not None:
                return GivingWay(job, step, units)
    return None


def _softened(
    needed: list[GivingWay], steps: tuple[Preemption, ...], shape: Shape, pool: Pool
) -> list[GivingWay]:
    """Takes for each job the mildest step that still frees enough, the best standing first."""
    for at in reversed(range(len(needed))):
        for step in reversed(steps):
            if step is needed[at].step:
                break
            milder = _hardest(needed[at].job, (step,), shape, pool)
            softer = [*needed[:at], milder, *needed[at + 1 :]] if milder else []
            if softer and _fits(pool, shape, softer):
                needed = softer
                break
        if needed[at].step is Preemption.SHRINK:
            needed = _with_fewer_gpus(needed, at, shape, pool)
    return needed


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


def _needed(pool: Pool, shape: Shape, chosen: list[GivingWay]) -> list[GivingWay]:
    """Drops the jobs that need not give way, the best standing first; empty if all are too few."""
    if not _fits(pool, shape, chosen):
        return []
    needed = list(chosen)
    for one in reversed(chosen):
        fewer = [other for other in needed if other is not one]
        if _fits(pool, shape, fewer):
            needed = fewer
    return needed


def _with_fewer_gpus(needed: list[GivingWay], at: int, shape: Shape, pool: Pool) -> list[GivingWay]:
    """Leaves a shrinking job the GPUs that the winner can do without."""
    for gpu in needed[at].units.gpus:
        one = needed[at]
        left = Units(gpus=tuple(other for other in one.units.gpus if other != gpu))
        fewer = [*needed[:at], one._replace(units=left), *needed[at + 1 :]]
        if _fits(pool, shape, fewer):
            needed = fewer
    return needed


def _fits(pool: Pool, shape: Shape, giving: list[GivingWay]) -> bool:
    then = pool.copy()
    for one in giving:
        then.give_back(one.units)
    return then.place(shape) is not None
