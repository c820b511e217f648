"""What to do next: proposes decisions and changes nothing.

Overdue jobs come first, then classes, strictly; within a class owners who used less, then the
policy's order. A job that does not fit may take the units of running ones that stand lower.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify
from itertools import chain
from typing import NamedTuple

from workbench.core import fairness, preemption
from workbench.core.decisions import Decision, End, Grant, Preempt, Stop
from workbench.core.job import Job
from workbench.core.model import JobId, JobState, Outcome, PriorityClass, Seconds, Shape, Uid, Units
from workbench.core.placement import Pool
from workbench.core.policy import Bypass
from workbench.core.preemption import Contender, Victims
from workbench.core.queues import Line, Queue, queue, replace_first
from workbench.core.quotas import Account, Limits
from workbench.core.reservations import Lane, Reservation, reserve
from workbench.core.spelling import count
from workbench.core.standings import CLASSES, OVERDUE, Shapes, Standings
from workbench.core.state import State, expected_end, lease_id

ITS_TURN = "it is its turn"
"""Ends the reason of a grant that there is nothing to say of."""


def decide(state: State, standings: Standings, pool: Pool) -> tuple[list[Decision], Seconds | None]:
    """Proposes what the latest event calls for.

    Args:
        state: The state; it is not changed.
        standings: Where its jobs stand; they are not changed.
        pool: What is free in it; it is not changed.

    Returns:
        Decisions to commit in this order; after that, nothing is left to decide, unless a job ended
        that others wait for. And when time alone lets a job start, because it will have been
        patient enough or a limit is lifted; None if none waits for that.
    """
    leaving = _leaving(state)
    decisions: list[Decision] = []
    for job_id, (outcome, reason) in leaving.items():
        number = state.next_decision + len(decisions)
        decisions.append(_leave(state, state.jobs[job_id], number, outcome, reason))
    if state.waiting_jobs == 0:
        return decisions, None
    round_ = _Round(state, standings, pool, leaving)
    number, lease = state.next_decision + len(decisions), state.next_lease
    for wish in round_.wishes():
        if isinstance(wish, _Start):
            decisions.append(_grant(state, wish, number, lease))
            lease += 1
        else:
            decisions.append(_preempt(state, wish, number))
        number += 1
    return decisions, round_.changes_at()


class _Start(NamedTuple):
    """A job gets units."""

    job: Job
    units: Units
    reason: str
    is_settled: bool
    counts_as: PriorityClass | None


class _GiveWay(NamedTuple):
    """A running job loses its units to a waiting one."""

    victim: Job
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
        counts_as=start.counts_as,
    )


def _preempt(state: State, wish: _GiveWay, number: int) -> Preempt:
    assert wish.victim.grant is not None
    return Preempt(
        id=number,
        at=state.at,
        lease=wish.victim.grant.lease,
        job=wish.victim.id,
        step=wish.victim.request.preemption[0],
        winner=wish.winner.id,
        reason=preemption.reason(wish.winner, wish.victim),
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
        self._leaving = leaving
        self._granted: dict[JobId, Units] = {}
        self._misfits: dict[Shape, None] = {}
        self._reserved: list[Reservation] = []
        self._is_passing = False
        self._shares: dict[Uid, int] = {}
        self._limits = Limits(state, standings.settings)
        self.victims = Victims(state, standings, self._share, spared=dict.fromkeys(leaving))

    def changes_at(self) -> Seconds | None:
        """Says when time alone lets a job start; to be asked after `wishes`."""
        times = (self.victims.patient_at, self._limits.changes_at)
        return min((at for at in times if at is not None), default=None)

    def wishes(self) -> Iterator[_Start | _GiveWay]:
        """Walks the queue in order; looks at one job of each place that does not fit."""
        if self._standings.overdue:
            yield from self._overdue()
        for level in range(len(CLASSES)):
            yield from self._of_class(level)

    def _overdue(self) -> Iterator[_Start | _GiveWay]:
        """Starts those who waited too long, on a part of the lab, so that the rest goes on.

        What is larger than that part has its turn in its class; units are kept for it where jobs
        that give way to nobody are in its way.
        """
        state, standings = self._state, self._standings
        lane = Lane(state, standings.settings.overdue_part)
        heads = [
            queue(0.0, shapes, [(0, turns[0], 0, turns, one) for one, turns in accounts.items()])
            for shapes, accounts in standings.overdue.items()
        ]
        heapify(heads)
        while heads:
            head = heads[0]
            job = state.jobs[head.turn.job]
            if job.id in self._leaving or job.owner not in state.agents:
                replace_first(heads, head.after())
                continue
            allowed = self._limits.allowed(head.account, head.shapes)
            if not allowed:
                replace_first(heads, head.without_account())
                continue
            shape = allowed[0]
            is_lane = lane.is_for(shape)
            if is_lane and not lane.has_room(shape):
                return
            if is_lane or (not job.request.preemption and self._place(allowed) is not None):
                contender = Contender(job, OVERDUE, 0, 0.0, allowed)
                wishes = self._start(contender, head.account)
                if wishes:
                    lane.take(shape)
                    yield from wishes
                    replace_first(heads, head.after())
                    continue
            if not self._reserved and not self.victims.would_do(shape, self._pool):
                self._reserve(job, shape)
            replace_first(heads, None if allowed is head.shapes else head.without_account())

    def _of_class(self, level: int) -> Iterator[_Start | _GiveWay]:
        bypass = self._standings.policy.bypass
        heads = self._heads(level)
        while heads:
            head = heads[0]
            job = self._state.jobs[head.turn.job]
            if job.id in self._leaving or job.id in self._granted:
                replace_first(heads, head.after())
                continue
            allowed = self._limits.allowed(head.account, head.shapes)
            if not allowed or not self._is_of(level, head.account, is_own=True):
                replace_first(heads, head.without_account())
                continue
            contender = Contender(job, level, head.share, head.score, allowed)
            wishes = self._start(contender, head.account)
            yield from wishes
            if wishes:
                replace_first(heads, head.after())
                continue
            if bypass is Bypass.STRICT:
                return
            self._is_passing = True
            if job.id in self._state.yielding or (bypass is Bypass.BACKFILL and not self._reserved):
                self._reserve(job, allowed[0])
            if self._is_put_off(job, allowed):
                replace_first(heads, head.after())  # One that is expected to end sooner may not be.
            else:
                replace_first(heads, None if allowed is head.shapes else head.without_account())

    def _heads(self, level: int) -> list[Queue]:
        """Lists the first job of each place that may get units at all."""
        agents, score = self._state.agents, self._standings.policy.score
        is_all = (
            self._standings.policy.bypass is not Bypass.GREEDY
            or bool(self._state.yielding)
            or bool(self._standings.running)
        )
        heads = []
        filed = self._standings.waiting
        places = chain(filed[1].items(), filed[0].items()) if level == 1 else filed[level].items()
        for shapes, queues in places:
            if not is_all and not any(self._pool.may_fit(shape) for shape in shapes):
                self._is_passing = True
                continue
            is_own = queues is filed[level].get(shapes)
            tiers: dict[int, list[Line]] = {}
            for (tier, account), turns in queues.items():
                if account.owner not in agents or not self._is_of(level, account, is_own=is_own):
                    continue
                line = (self._share(account.owner), turns[0], 0, turns, account)
                tiers.setdefault(tier, []).append(line)
            for tier, lines in tiers.items():
                heads.append(queue(score(self._state, tier, shapes[0].gpus), shapes, lines))
        heapify(heads)
        return heads

    def _is_of(self, level: int, account: Account, *, is_own: bool) -> bool:
        """Whether jobs are of a class now: those beyond the budget of `high` are of the next."""
        if not account.is_high:
            return is_own
        return (level == 0) == self._limits.may_be_high(account.owner)

    def _start(self, contender: Contender, account: Account) -> list[_Start | _GiveWay]:
        """Finds units for a job: free ones, or those of jobs that give way to it."""
        job = contender.job
        is_high = account.is_high and self._limits.may_be_high(account.owner)
        units = self._place(contender.shapes)
        if units is not None:
            if self._reserved and not self._puts_nobody_off(job, units):
                return []
            self._own().take(units)
            self._granted[job.id] = units
            self._limits.take(account, units, is_high=is_high)
            counts_as = CLASSES[1] if account.is_high and not is_high else None
            is_settled = contender.level == OVERDUE
            return [_Start(job, units, self._reason(contender, units), is_settled, counts_as)]
        if self._reserved or job.id in self._state.yielding:
            return []
        victims = self.victims.of(contender, self._pool)
        if not victims:
            return []
        units = self._granted[job.id] = self._set_apart(contender.shapes[0], victims)
        self._limits.take(account, units, is_high=is_high)
        return [_GiveWay(victim, job) for victim in victims]

    def _is_put_off(self, job: Job, shapes: Shapes) -> bool:
        """Whether only a reservation keeps a job of known length from starting."""
        if not self._reserved or expected_end(self._state, job) is None:
            return False
        return self._place(shapes) is not None

    def _place(self, shapes: Shapes) -> Units | None:
        """Places a job; in a round units only get fewer, so what did not fit will not."""
        for shape in shapes:
            units = None if shape in self._misfits else self._pool.place(shape)
            if units is not None:
                return units
            self._misfits[shape] = None
        return None

    def _set_apart(self, shape: Shape, victims: list[Job]) -> Units:
        """Takes what is free now of a winner's units: the rest is not free yet."""
        coming = [victim.grant.units for victim in victims if victim.grant]
        then = self._pool.copy()
        for one in coming:
            then.give_back(one)
        units = then.place(shape)
        assert units is not None
        self._own().set_apart(units, coming)
        return units

    def _reserve(self, job: Job, shape: Shape) -> None:
        found = reserve(self._state, self._pool, job, shape, self._granted, self._reserved)
        if found is not None:
            self._reserved.append(found)

    def _reason(self, contender: Contender, units: Units) -> str:
        if contender.level == OVERDUE:
            return "it waited longer than the lab's bound"
        passing = "it fits, and the jobs ahead of it do not yet"
        turn = passing if self._is_passing else ITS_TURN
        said = f"class {CLASSES[contender.level]}: {turn}"
        if contender.level == 1 and contender.job.request.priority is PriorityClass.HIGH:
            said += "; its owner's budget of class high is used"
        gpus = contender.job.request.gpus
        if gpus and not units.gpus:
            said += f"; {count(units.cores, 'core')} in place of {count(gpus, 'GPU')}"
        return said

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
