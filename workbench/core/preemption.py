"""Which running jobs give way to a waiting one, and how: the mildest step that frees enough.

The rungs of the ladder are tried one after the other: first only what jobs can do without being
stopped, last what throws work away. On a rung the worst standing job gives way first, and at equal
standing the one that loses least. Nobody gives way for nothing: the winner then fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from workbench.core.job import Job, served_s, steady_since
from workbench.core.model import DeviceId, JobId, JobState, Preemption, Seconds, Shape, Uid, Units
from workbench.core.placement import Pool
from workbench.core.standings import OVERDUE, Runner, Standings
from workbench.core.state import State

_SLACK_S: Final = 1e-6
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
        shape: What it asks for.
    """

    job: Job
    level: int
    share: int
    score: float
    shape: Shape


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
        share: Ranks an owner by use.
        spared: Jobs that are on their way out already, and suspended ones that go on; those that
            are found are added.
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
        self._rungs: dict[Preemption, tuple[Preemption, ...]] = {}
        """Those that a running job allows, the mildest first, and what is allowed on each: its own
        step and milder ones, the hardest first."""

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
            self._runners = self._line_up()
        for rung in self._rungs:
            found = self._on_rung(contender, pool, rung, self._runners)
            if found:
                self._spared |= dict.fromkeys(one.job.id for one in found)
                return found
        return []

    def would_do(self, shape: Shape, pool: Pool, starting: dict[JobId, Units]) -> bool:
        """Tells whether a job would fit if all jobs that allow preemption gave way.

        Args:
            shape: What it asks for.
            pool: What is free; it is not changed.
            starting: What jobs get that start now, and may have to give back again.
        """
        allowed = self._standings.settings.steps
        steps = tuple(step for step in reversed(LADDER) if step in allowed)
        live = [self._state.jobs[job] for job in self._state.leases.values()]
        giving = [self._hardest(job, steps, shape, pool) for job in live if job.request.preemption]
        found = [one for one in giving if one is not None]
        for job_id, units in starting.items():
            job = self._state.jobs[job_id]
            if job_id in self._spared and any(step in job.request.preemption for step in steps):
                found.append(GivingWay(job, steps[0], units))
        return _fits(pool, shape, found)

    def _line_up(self) -> list[Runner]:
        """Lists who runs, the worst standing first, and finds the rungs that there are."""
        standings = self._standings
        allowed = {step: None for ladder in standings.ladders for step in ladder}
        hardest_first: tuple[Preemption, ...] = ()
        for step in LADDER:
            if step in allowed and step in standings.settings.steps:
                hardest_first = (step, *hardest_first)
                self._rungs[step] = hardest_first
        runners = standings.runners(self._state)
        if Preemption.REQUEUE in self._rungs:  # Else nobody's work is lost.
            runners.sort(key=lambda one: (-one.level, -one.score, self._lost_s(one.turn.job)))
        return runners

    def _lost_s(self, job_id: JobId) -> Seconds:
        """Says how much work is thrown away if a job gives way by its mildest stop."""
        job = self._state.jobs[job_id]
        if Preemption.CHECKPOINT in job.request.preemption or job.grant is None:
            return 0.0
        return min(served_s(job, self._state.at), self._state.at - job.grant.at)

    def _on_rung(
        self, contender: Contender, pool: Pool, rung: Preemption, runners: list[Runner]
    ) -> list[GivingWay]:
        """Chooses among the steps up to one rung."""
        steps, shape = self._rungs[rung], contender.shape
        gpus, cores, memory = pool.free_gpus, pool.cores, pool.memory_bytes
        chosen: list[GivingWay] = []
        for running in self._candidates(contender, runners):
            one = self._hardest(running, steps, shape, pool, contender.job)
            if one is None:
                continue
            chosen.append(one)
            gpus += len(one.units.gpus)
            cores += one.units.cores
            memory += one.units.memory_bytes
            if gpus >= shape.gpus and cores >= shape.cores and memory >= shape.memory_bytes:
                needed = _needed(pool, shape, chosen)
                if needed:
                    return self._softened(needed, steps, shape, pool)
        return []

    def _softened(
        self,
        needed: list[GivingWay],
        steps: tuple[Preemption, ...],
        shape: Shape,
        pool: Pool,
    ) -> list[GivingWay]:
        """Takes for each job the mildest step that still frees enough, the best standing first."""
        for at in reversed(range(len(needed))):
            for step in reversed(steps):
                if step is needed[at].step:
                    break
                milder = self._hardest(needed[at].job, (step,), shape, pool)
                softer = [*needed[:at], milder, *needed[at + 1 :]] if milder else []
                if softer and _fits(pool, shape, softer):
                    needed = softer
                    break
            if needed[at].step is Preemption.SHRINK:
                needed = _with_fewer_gpus(needed, at, shape, pool)
        return needed

    def _hardest(
        self,
        job: Job,
        steps: tuple[Preemption, ...],
        shape: Shape,
        pool: Pool,
        waiting: Job | None = None,
    ) -> GivingWay | None:
        """Finds the step that frees most; None where none frees anything that is wanted."""
        allowed = job.request.preemption
        for step in steps:
            if step not in allowed:
                continue
            if step in _MILD:
                units = _freed_mildly(job, step, shape, pool)
            elif waiting is None or self._is_worth_it(job, waiting):
                units = _freed_by_stop(job)
            else:
                units = None
            if units is not None:
                return GivingWay(job, step, units)
        return None

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
            is_plain = running.ladder is None
            started = (running.started_at or 0.0) if is_plain else steady_since(running)
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

    def _is_worth_it(self, running: Job, waiting: Job) -> bool:
        """Whether a stop gains more than its restart costs, as far as the job's end is known."""
        restart_s, request = self._standings.settings.restart_s, running.request
        if restart_s <= 0 or (request.expected_s is None and request.time_limit_s is None):
            return True
        left_s = _left_s(running, self._state.at)
        if left_s is None or left_s > restart_s + self._state.at - waiting.queued_at:
            return True
        # Should it outrun what was expected of it, nobody knows any more when it ends.
        self._look_again(self._state.at + left_s)
        return False

    def _look_again(self, at: Seconds) -> None:
        at = max(at, self._state.at + _STEP_S)
        if self.patient_at is None or at < self.patient_at:
            self.patient_at = at


def _left_s(job: Job, at: Seconds) -> Seconds | None:
    """Says how long a job likely still runs; None where nobody knows, or it stands still."""
    if job.started_at is None:
        return None
    served = served_s(job, at)
    spans = (job.request.expected_s, job.request.time_limit_s)
    left = [span - served for span in spans if span is not None and span - served > _SLACK_S]
    return min(left, default=None)


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
