"""One pass over the queue: who starts, on what, and who gives way."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify
from typing import NamedTuple

from workbench.core.guard import Guard
from workbench.core.job import Job, stopping_step
from workbench.core.model import JobId, Outcome, PriorityClass, Seconds, Shape, Uid, Units
from workbench.core.notices import IT_GOES_ON, why_it_starts
from workbench.core.placement import Pool, shapes_wanted
from workbench.core.policy import Bypass
from workbench.core.preemption import Contender, Victims
from workbench.core.queues import Queue, queue, replace_first
from workbench.core.quotas import Account, Limits
from workbench.core.reservations import Going, Lane, Reservation, reserve
from workbench.core.rungs import GivingWay
from workbench.core.standings import CLASSES, OVERDUE, Shapes, Standings
from workbench.core.state import State, expected_end


class Start(NamedTuple):
    """A job gets units: all that it asks for, or its cores again if it is suspended."""

    job: Job
    units: Units
    reason: str
    is_settled: bool
    counts_as: PriorityClass | None


class GiveWay(NamedTuple):
    """A running job loses its units to a waiting one."""

    one: GivingWay
    winner: Job


def _claims_left(
    state: State, leaving: dict[JobId, tuple[Outcome, str]]
) -> dict[JobId, tuple[JobId, ...]]:
    """Leaves out which jobs no longer go on with less for others once they are stopped."""
    left = {
        winner: tuple(job for job in jobs if job not in leaving or state.jobs[job].preempt)
        for winner, jobs in state.yielding.items()
    }
    return {winner: jobs for winner, jobs in left.items() if jobs}


class Round:
    """One pass over the queue, on a scratch pool."""

    def __init__(
        self,
        state: State,
        standings: Standings,
        pool: Pool,
        leaving: dict[JobId, tuple[Outcome, str]],
        guard: Guard | None,
    ) -> None:
        self._guard = guard
        self._state = state
        self._standings = standings
        self._pool = pool
        self._is_own = False
        self._leaving = leaving
        self.gone: dict[JobId, None] = dict.fromkeys(leaving)
        """Jobs on their way out, those that give way now, and those that start now."""
        self._yielding = state.yielding if not leaving else _claims_left(state, leaving)
        self._granted: dict[JobId, Units] = {}
        self._misfits: dict[Shape, None] = {}
        self._reserved: list[Reservation] = []
        self._yielding_starts: list[Units] = []
        self._is_passing = False
        self._is_closed = False
        self._shares = standings.shares(state)
        self.limits = Limits(state, standings.settings)
        self.victims = Victims(state, standings, self._shares, spared=self.gone)

    def changes_at(self) -> Seconds | None:
        """Says when time alone lets a job start; to be asked after `wishes`."""
        times = (self.victims.patient_at, self.limits.changes_at)
        return min((at for at in times if at is not None), default=None)

    def wishes(self) -> Iterator[Start | GiveWay]:
        """Walks the queue in order; looks at one job of each place that does not fit."""
        if self._guard is not None:
            yield from self._booked(self._guard)
        if self._standings.overdue:
            yield from self._overdue()
        waiting = self._standings.waiting
        for level, filed in enumerate(waiting):
            # What is beyond the budget of the first class is of the second.
            if not self._is_closed and (filed or (level == 1 and waiting[0])):
                yield from self._of_class(level)
        if self._state.suspended:
            yield from self._suspended()

    def left_for(self, job: Job) -> Pool:
        """Returns what is left that a job may use, to be read only; to be asked after `wishes`.

        Args:
            job: A job that was shrunk.
        """
        return self._pool_for(job)

    def grow(self, job: Job, units: Units) -> None:
        """Takes what a job gets back.

        Args:
            job: A job that was shrunk.
            units: What is added.
        """
        self._own().take(units)
        self.limits.note_growth(job, len(units.gpus))
        if self._guard is not None:
            self._guard.note(job, units)

    def _booked(self, guard: Guard) -> Iterator[Start]:
        """Starts jobs on GPUs that their owners booked: nobody else waits for those."""
        for owner in guard.owners():
            for level in range(len(self._standings.waiting)):
                heads = self._heads(level, owner)
                while heads:
                    head = heads[0]
                    job = self._state.jobs[head.turn.job]
                    if job.id not in self.gone and job.id not in self._granted:
                        units = self._place_own(guard, job, head)
                        if units is None:
                            replace_first(heads, head.without_account())
                            continue
                        reason = "its owner booked its GPUs"
                        yield self._begin(job, head.account, units, reason, is_settled=False)
                    replace_first(heads, head.after())

    def _place_own(self, guard: Guard, job: Job, head: Queue) -> Units | None:
        for shape in self.limits.allowed(head.account, head.shapes):
            units = guard.place_own(job, shape, self._pool) if shape.gpus else None
            if units is not None:
                return units
        return None

    def _overdue(self) -> Iterator[Start | GiveWay]:
        """Starts those who waited too long, on a part of the lab, so that the rest goes on.

        What is larger than that part has its turn in its class; units are kept for it where jobs
        that give way to nobody are in its way.
        """
        state, standings = self._state, self._standings
        lane = Lane(state, standings.settings.overdue_part, standings.settled.values())
        heads = [
            queue(0.0, shapes, [(0, turns[0], 0, turns, one) for one, turns in accounts.items()])
            for shapes, accounts in standings.overdue.items()
        ]
        heapify(heads)
        while heads:
            head = heads[0]
            job = state.jobs[head.turn.job]
            if job.id in self.gone or job.id in self._granted or job.owner not in state.agents:
                replace_first(heads, head.after())
                continue
            allowed = self.limits.allowed(head.account, head.shapes)
            if not allowed:
                replace_first(heads, head.without_account())
                continue
            shape = allowed[0]
            is_lane = lane.is_for(shape)
            if is_lane and not lane.has_room(shape):
                return
            if is_lane or (not job.request.preemption and self._place(job, allowed) is not None):
                contender = Contender(job, OVERDUE, 0, 0.0, allowed)
                wishes = self._start(contender, head.account)
                if wishes:
                    lane.take(shape)
                    yield from wishes
                    replace_first(heads, head.after())
                    continue
            if self._is_blocked(job, shape):
                self._reserve(job, shape)
            replace_first(heads, None if allowed is head.shapes else head.without_account())

    def _is_blocked(self, job: Job, shape: Shape) -> bool:
        """Whether jobs that give way to nobody are in a job's way, and nothing is kept yet."""
        if self._reserved or not (self._standings.firm or self._granted or self._guard):
            return False
        return not self._would_do(job, shape)

    def _would_do(self, job: Job, shape: Shape) -> bool:
        """Whether it would fit if all gave way that can, those that start right now among them."""
        pool = self._pool_for(job)
        if self._yielding_starts:
            pool = pool.copy()
            for units in self._yielding_starts:
                pool.give_back(units)
        return self.victims.would_do(shape, pool)

    def _of_class(self, level: int) -> Iterator[Start | GiveWay]:
        bypass = self._standings.policy.bypass
        heads = self._heads(level)
        while heads:
            head = heads[0]
            job = self._state.jobs[head.turn.job]
            if job.id in self.gone or job.id in self._granted:
                replace_first(heads, head.after())
                continue
            allowed = self.limits.allowed(head.account, head.shapes)
            is_high = head.account.is_high
            if not allowed or (is_high and not self._is_of(level, head.account, filed=level)):
                replace_first(heads, head.without_account())
                continue
            contender = Contender(job, level, head.share, head.score, allowed)
            wishes = self._start(contender, head.account)
            yield from wishes
            if wishes:
                replace_first(heads, head.after())
                continue
            if job.id in self._yielding or (bypass is Bypass.BACKFILL and not self._reserved):
                self._reserve(job, allowed[0])
            if bypass is Bypass.STRICT:
                self._is_closed = True
                return
            self._is_passing = True
            if (self._reserved or self._guard) and self._is_put_off(job, allowed):
                replace_first(heads, head.after())  # One that is expected to end sooner may not be.
            else:
                replace_first(heads, None if allowed is head.shapes else head.without_account())

    def _suspended(self) -> Iterator[Start]:
        """Lets suspended jobs pass those that do not fit, under any policy.

        What they keep may be what those wait for. Only what others are giving back for a job stays
        that job's.
        """
        state, standings = self._state, self._standings
        self._reserved = [one for one in self._reserved if one.job in self._yielding]
        jobs = [state.jobs[job] for job in state.suspended if job not in self.gone]
        jobs.sort(key=lambda job: (standings.level_of(state, job), job.queued_at, job.number))
        for job in jobs:
            if job.owner not in state.agents or job.id in self._granted:
                continue
            units = self._place(job, shapes_wanted(job))
            if units is not None and (not self._reserved or self._puts_nobody_off(job, units)):
                yield self._begin(job, Account.of(job), units, IT_GOES_ON, is_settled=False)

    def _heads(self, level: int, only: Uid | None = None) -> list[Queue]:
        """Lists the first job of each place that may get units at all, or of one owner's."""
        standings, shares, agents = self._standings, self._shares, self._state.agents
        score = standings.policy.score
        is_all = (
            standings.policy.bypass is not Bypass.GREEDY
            or bool(self._yielding)
            or standings.has_preemptible
        )
        heads = []
        for filed in (1, 0) if level == 1 else (level,):
            for shapes, tiers in standings.waiting[filed].items():
                if not is_all and not self._may_fit(shapes):
                    self._is_passing = True
                    continue
                for tier, accounts in tiers.items():
                    lines = [
                        (shares[account.owner], turns[0], 0, turns, account)
                        for account, turns in accounts.items()
                        if account.owner in agents
                        and (only is None or account.owner == only)
                        and (
                            self._is_of(level, account, filed=filed)
                            if account.is_high
                            else filed == level
                        )
                    ]
                    if lines:
                        rank = score(self._state, tier, shapes[0].gpus)
                        heads.append(queue(rank, shapes, lines))
        heapify(heads)
        return heads

    def _may_fit(self, shapes: Shapes) -> bool:
        return any(self._pool.may_fit(shape) for shape in shapes)

    def _is_of(self, level: int, account: Account, *, filed: int) -> bool:
        """Whether high jobs count as of a class: those beyond the budget as of the next."""
        if filed:
            return filed == level
        return (level == 0) == self.limits.may_be_high(account.owner)

    def _start(self, contender: Contender, account: Account) -> list[Start | GiveWay]:
        """Finds units for a job: free ones, or those of jobs that give way to it."""
        job = contender.job
        units = self._place(job, contender.shapes)
        if units is not None:
            if self._reserved and not self._puts_nobody_off(job, units):
                return []
            is_settled = contender.level == OVERDUE
            reason = why_it_starts(contender, units, is_passing=self._is_passing)
            return [self._begin(job, account, units, reason, is_settled=is_settled)]
        if self._reserved or job.id in self._yielding:
            return []
        victims = self.victims.of(contender, self._pool_for(job))
        if not victims:
            return []
        is_high = account.is_high and self.limits.may_be_high(account.owner)
        units = self._granted[job.id] = self._set_apart(job, contender.shapes[0], victims)
        self.limits.take(account, units, is_high=is_high)
        return [GiveWay(one, job) for one in victims]

    def _begin(
        self, job: Job, account: Account, units: Units, reason: str, *, is_settled: bool
    ) -> Start:
        """Takes the units that a job starts on."""
        is_high = account.is_high and self.limits.may_be_high(account.owner)
        counts_as = CLASSES[1] if account.is_high and not is_high else None
        if self._guard is not None:
            reason += self._guard.warning(job, units, self._pool)
        self._own().take(units)
        self._granted[job.id] = units
        if job.grant is None:
            self.gone[job.id] = None
        else:
            self.victims.spare(job.id)
        self.limits.take(account, units, is_high=is_high)
        if stopping_step(job.request) is not None:
            self._yielding_starts.append(units)
        if self._guard is not None:
            self._guard.note(job, units)
        return Start(job, units, reason, is_settled, counts_as)

    def _is_put_off(self, job: Job, shapes: Shapes) -> bool:
        """Whether only a reservation keeps a job of known length from starting, or a booking."""
        guard, pool = self._guard, self._pool
        if guard is not None and any(guard.is_worth_a_look(shape, pool) for shape in shapes):
            return True
        if not self._reserved or expected_end(self._state, job) is None:
            return False
        return self._place(job, shapes) is not None

    def _pool_for(self, job: Job) -> Pool:
        return self._pool if self._guard is None else self._guard.pool_for(job, self._pool)

    def _place(self, job: Job, shapes: Shapes) -> Units | None:
        """Places a job; in a round units only get fewer, so what did not fit will not."""
        for shape in shapes:
            if self._guard is not None:
                units = self._guard.place(job, shape, self._pool)
            else:
                units = None if shape in self._misfits else self._pool.place(shape)
            if units is not None:
                return units
            self._misfits[shape] = None
        return None

    def _set_apart(self, job: Job, shape: Shape, victims: list[GivingWay]) -> Units:
        """Takes what is free now of a winner's units: the rest is not free yet."""
        coming = [one.units for one in victims]
        then = self._pool_for(job).copy()
        for one in coming:
            then.give_back(one)
        units = then.place(shape)
        assert units is not None
        self._own().set_apart(units, coming)
        return units

    def _reserve(self, job: Job, shape: Shape) -> None:
        going = Going(self._granted, self._leaving)
        found = reserve(self._state, self._pool_for(job), job, shape, going, self._reserved)
        if found is not None:
            self._reserved.append(found)

    def _puts_nobody_off(self, job: Job, units: Units) -> bool:
        end = expected_end(self._state, job)
        if not all(one.allows(units, end) for one in self._reserved):
            return False
        for one in self._reserved:
            one.take(units, end)
        return True

    def _own(self) -> Pool:
        if not self._is_own:
            self._pool, self._is_own = self._pool.copy(), True
        if self._guard is not None:
            self._guard.forget()
        return self._pool
