"""What to do next: proposes decisions and changes nothing.

Overdue jobs come first, then classes, strictly; within a class owners who used less, then the
policy's order. A job that does not fit may take the units of running ones that stand lower.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

from workbench.core import fairness
from workbench.core.decisions import Decision, End, Grant, Stop
from workbench.core.growth import growths
from workbench.core.job import Job
from workbench.core.model import JobId, JobState, Outcome, Seconds, Shape, Uid, Units
from workbench.core.notices import giving_way, going_on
from workbench.core.placement import Pool, shape_wanted
from workbench.core.policy import Bypass
from workbench.core.preemption import Contender, GivingWay, Victims
from workbench.core.reservations import Lane, Reservation, reserve
from workbench.core.standings import CLASSES, OVERDUE, Standings, Turn
from workbench.core.state import State, expected_end, lease_id

ITS_TURN = "it is its turn"
"""Ends the reason of a grant that there is nothing to say of."""
IT_GOES_ON = "it gave way before, and its cores are free"
"""The reason of a job that goes on while others before it do not fit."""


def decide(state: State, standings: Standings, pool: Pool) -> tuple[list[Decision], Seconds | None]:
    """Proposes what the latest event calls for.

    Args:
        state: The state; it is not changed.
        standings: Where its jobs stand; they are not changed.
        pool: What is free in it; it is not changed.

    Returns:
        Decisions to commit in this order; after that, nothing is left to decide. And when a waiting
        job will have been patient enough, if nothing else happens; None if none waits for that.
    """
    leaving = _leaving(state)
    decisions: list[Decision] = []
    for job_id, (outcome, reason) in leaving.items():
        number = state.next_decision + len(decisions)
        decisions.append(_leave(state, state.jobs[job_id], number, outcome, reason))
    if state.waiting_jobs == 0 and not state.shrunk:
        return decisions, None
    round_ = _Round(state, standings, pool, leaving)
    number, lease = state.next_decision + len(decisions), state.next_lease
    for wish in round_.wishes():
        if isinstance(wish, _GiveWay):
            decisions.append(giving_way(state, wish.one, wish.winner, number))
        elif wish.job.grant is not None:
            again = going_on(state, wish.job, number, wish.reason, is_settled=wish.is_settled)
            decisions.append(again)
        else:
            decisions.append(_grant(state, wish, number, lease))
            lease += 1
        number += 1
    if state.shrunk:
        decisions += growths(state, standings, round_.left(), round_.gone, number)
    return decisions, round_.victims.patient_at


class _Start(NamedTuple):
    """A job gets units: all that it asks for, or its cores again if it is suspended."""

    job: Job
    units: Units
    reason: str
    is_settled: bool


class _GiveWay(NamedTuple):
    """A running job loses its units to a waiting one."""

    one: GivingWay
    winner: Job


def _grant(state: State, start: _Start, number: int, lease: int) -> Grant:
    return Grant(
        id=number,
        at=state.at,
        lease=lease_id(lease),
        job=start.job.id,
        units=start.units,
        reason=start.reason,
        is_settled=start.is_settled,
    )


def _leaving(state: State) -> dict[JobId, tuple[Outcome, str]]:
    """Lists the jobs that were cancelled or whose time is over, with outcome and reason."""
    leaving = {job: (Outcome.CANCELLED, reason) for job, reason in state.cancelling.items()}
    for deadline in state.deadlines:
        if deadline.at > state.at:
            break
        job = state.jobs[deadline.job]
        if job.state is JobState.QUEUED:
            reason = f"it waited longer than its limit of {job.request.wait_limit_s:g} s"
            leaving.setdefault(job.id, (Outcome.EXPIRED, reason))
        else:
            reason = f"it ran longer than its limit of {job.request.time_limit_s:g} s"
            leaving.setdefault(job.id, (Outcome.TIMED_OUT, reason))
    return leaving


def _leave(state: State, job: Job, number: int, outcome: Outcome, reason: str) -> Decision:
    if job.grant is None:
        return End(id=number, at=state.at, job=job.id, outcome=outcome, reason=reason)
    lease = job.grant.lease
    return Stop(id=number, at=state.at, lease=lease, job=job.id, outcome=outcome, reason=reason)


class _Queue(NamedTuple):
    """The jobs of one shape and tier; the head of the best owner stands for all of them.

    Attributes:
        share: Of that owner.
        score: The policy's, of all of them.
        turn: Of the head.
        position: Of the head in `turns`.
        turns: That owner's.
        shape: What all of them ask for.
        others: What the other owners have, as a heap of share, turn, position and turns.
    """

    share: int
    score: float
    turn: Turn
    position: int
    turns: list[Turn]
    shape: Shape
    others: list[tuple[int, Turn, int, list[Turn]]]

    def after(self) -> _Queue | None:
        """Returns the queue without its head; None where that was all."""
        others, position = self.others, self.position + 1
        if position < len(self.turns):
            heappush(others, (self.share, self.turns[position], position, self.turns))
        if not others:
            return None
        share, turn, position, turns = heappop(others)
        return self._replace(share=share, turn=turn, position=position, turns=turns)


def _claims_left(
    state: State, leaving: dict[JobId, tuple[Outcome, str]]
) -> dict[JobId, tuple[JobId, ...]]:
    """Leaves out what jobs no longer give to others once they are stopped."""
    left = {
        winner: tuple(job for job in jobs if job not in leaving)
        for winner, jobs in state.yielding.items()
    }
    return {winner: jobs for winner, jobs in left.items() if jobs}


class _Round:
    """One pass over the queue, on a scratch pool."""

    def __init__(
        self,
        state: State,
        standings: Standings,
        pool: Pool,
        leaving: dict[JobId, tuple[Outcome, str]],
    ) -> None:
        self._state = state
        self._standings = standings
        self._pool = pool
        self._is_own = False
        self.gone: dict[JobId, None] = dict.fromkeys(leaving)
        """Jobs on their way out, those that give way now, and those that start now."""
        self._yielding = state.yielding if not leaving else _claims_left(state, leaving)
        self._granted: dict[JobId, Units] = {}
        self._misfits: dict[Shape, None] = {}
        self._reserved: list[Reservation] = []
        self._is_passing = False
        self._shares: dict[Uid, int] = {}
        self.victims = Victims(state, standings, self._share, spared=self.gone)

    def wishes(self) -> Iterator[_Start | _GiveWay]:
        """Walks the queue in order; looks at one job of each place that does not fit."""
        if self._standings.overdue:
            yield from self._overdue()
        for level, shapes in enumerate(self._standings.waiting):
            if shapes:
                yield from self._of_class(level)
        if self._state.suspended:
            yield from self._suspended()

    def left(self) -> Pool:
        """Returns what is left, a pool of the caller's own."""
        return self._own()

    def _overdue(self) -> Iterator[_Start | _GiveWay]:
        """Starts those who waited too long, on a part of the lab, so that the rest goes on.

        What is larger than that part has its turn in its class; units are kept for it where jobs
        that give way to nobody are in its way.
        """
        state, standings = self._state, self._standings
        lane, would_do = Lane(state, standings.settings.overdue_part), self.victims.would_do
        heads = [
            _Queue(0, 0.0, turns[0], 0, turns, shape, [])
            for shape, turns in standings.overdue.items()
        ]
        heapify(heads)
        while heads:
            head = heads[0]
            job, shape = state.jobs[head.turn.job], head.shape
            if job.id in self.gone or job.owner not in state.agents:
                self._advance(heads)
                continue
            is_lane = lane.is_for(shape)
            if is_lane and not lane.has_room(shape):
                return
            if is_lane or (not job.request.preemption and self._place(shape) is not None):
                contender = Contender(job=job, level=OVERDUE, share=0, score=0.0, shape=shape)
                wishes = self._start(contender, is_settled=True)
                if wishes:
                    lane.take(shape)
                    yield from wishes
                    self._advance(heads)
                    continue
            if not self._reserved and not would_do(shape, self._pool, self._granted):
                self._reserve(job, shape)
            heappop(heads)

    def _of_class(self, level: int) -> Iterator[_Start | _GiveWay]:
        bypass = self._standings.policy.bypass
        heads = self._heads(level)
        while heads:
            head = heads[0]
            job = self._state.jobs[head.turn.job]
            if job.id in self.gone or job.id in self._granted:
                self._advance(heads)
                continue
            contender = Contender(job, level, head.share, head.score, head.shape)
            wishes = self._start(contender, is_settled=False)
            yield from wishes
            if wishes:
                self._advance(heads)
                continue
            is_first = bypass is Bypass.BACKFILL and not self._reserved
            if is_first or job.id in self._yielding:
                self._reserve(job, head.shape)
            if bypass is Bypass.STRICT:
                return
            self._is_passing = True
            if self._is_put_off(job, head.shape):
                self._advance(heads)  # One that is expected to end sooner may not be.
            else:
                heappop(heads)

    def _suspended(self) -> Iterator[_Start | _GiveWay]:
        """Lets suspended jobs pass those that do not fit.

        What they keep may be what those wait for. Only what others are giving back for a job stays
        that job's.
        """
        state, standings = self._state, self._standings
        self._reserved = [one for one in self._reserved if one.job in self._yielding]
        jobs = [state.jobs[job] for job in state.suspended if job not in self.gone]
        jobs.sort(key=lambda job: (standings.level_of(state, job), job.queued_at, job.number))
        for job in jobs:
            units = self._place(shape_wanted(job))
            if units is None or job.owner not in state.agents or job.id in self._granted:
                continue
            if self._puts_nobody_off(job, units):
                yield self._begin(job, units, IT_GOES_ON)

    def _heads(self, level: int) -> list[_Queue]:
        """Lists the first job of each place that may get units at all."""
        standings, agents = self._standings, self._state.agents
        is_all = (
            standings.policy.bypass is not Bypass.GREEDY
            or bool(self._yielding)
            or bool(standings.running)
        )
        score = standings.policy.score
        heads = []
        for shape, queues in standings.waiting[level].items():
            if not is_all and not self._pool.may_fit(shape):
                self._is_passing = True
                continue
            tiers: dict[int, list[tuple[int, Turn, int, list[Turn]]]] = {}
            for (tier, owner), turns in queues.items():
                if owner in agents:
                    first = (self._share(owner), turns[0], 0, turns)
                    tiers.setdefault(tier, []).append(first)
            for tier, owners in tiers.items():
                heapify(owners)
                share, turn, position, turns = heappop(owners)
                rank = score(self._state, tier, shape.gpus)
                heads.append(_Queue(share, rank, turn, position, turns, shape, owners))
        heapify(heads)
        return heads

    @staticmethod
    def _advance(heads: list[_Queue]) -> None:
        following = heads[0].after()
        if following is None:
            heappop(heads)
        else:
            heapreplace(heads, following)

    def _start(self, contender: Contender, *, is_settled: bool) -> list[_Start | _GiveWay]:
        """Finds units for a job: free ones, or those of jobs that give way to it."""
        job, shape = contender.job, contender.shape
        units = self._place(shape)
        if units is not None:
            if self._reserved and not self._puts_nobody_off(job, units):
                return []
            return [self._begin(job, units, self._reason(contender), is_settled=is_settled)]
        if self._reserved or job.id in self._yielding:
            return []
        victims = self.victims.of(contender, self._pool)
        if not victims:
            return []
        self._granted[job.id] = self._set_apart(shape, victims)
        return [_GiveWay(one, job) for one in victims]

    def _begin(self, job: Job, units: Units, reason: str, *, is_settled: bool = False) -> _Start:
        self._own().take(units)
        self._granted[job.id] = units
        self.gone[job.id] = None
        return _Start(job, units, reason, is_settled)

    def _is_put_off(self, job: Job, shape: Shape) -> bool:
        """Whether only a reservation keeps a job of known length from starting."""
        if not self._reserved or expected_end(self._state, job) is None:
            return False
        return self._place(shape) is not None

    def _place(self, shape: Shape) -> Units | None:
        """Places a job; in a round units only get fewer, so what did not fit will not."""
        units = None if shape in self._misfits else self._pool.place(shape)
        if units is None:
            self._misfits[shape] = None
        return units

    def _set_apart(self, shape: Shape, victims: list[GivingWay]) -> Units:
        """Takes what is free now of a winner's units: the rest is not free yet."""
        given = [one.units for one in victims]
        then = self._pool.copy()
        for one in given:
            then.give_back(one)
        units = then.place(shape)
        assert units is not None
        coming = {gpu for one in given for gpu in one.gpus}
        self._own().take(
            Units(
                gpus=tuple(gpu for gpu in units.gpus if gpu not in coming),
                cores=max(units.cores - sum(one.cores for one in given), 0),
                memory_bytes=max(units.memory_bytes - sum(one.memory_bytes for one in given), 0),
            )
        )
        return units

    def _reserve(self, job: Job, shape: Shape) -> None:
        found = reserve(self._state, self._pool, job, shape, self._granted, self._reserved)
        if found is not None:
            self._reserved.append(found)

    def _reason(self, contender: Contender) -> str:
        if contender.level == OVERDUE:
            return "it waited longer than the lab's bound"
        passing = "it fits, and the jobs ahead of it do not yet"
        turn = passing if self._is_passing else ITS_TURN
        return f"class {CLASSES[contender.level]}: {turn}"

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
        return self._pool

    def _share(self, owner: Uid) -> int:
        if not self._standings.settings.fair_share:
            return 0
        known = self._shares.get(owner)
        if known is None:
            known = self._shares[owner] = fairness.share(self._state, owner)
        return known
