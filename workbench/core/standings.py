"""Where every live job stands: the waiting ones in order, the running ones worst first.

It is derived from the state, the policy and the settings: the journal knows nothing of it, so that
another policy may order the same history. With it an event looks at one job of each shape and
owner, however long the queue is.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush
from typing import Final, NamedTuple

from workbench.core import fairness
from workbench.core.job import Job, crossing_of, steady_since, waited_s
from workbench.core.model import JobId, JobState, Preemption, PriorityClass, Seconds, Shape, Uid
from workbench.core.placement import shape_wanted
from workbench.core.policy import Policy
from workbench.core.settings import Settings
from workbench.core.state import State

CLASSES: Final = tuple(PriorityClass)
OVERDUE: Final = -1
"""Stands for a class before all others, where classes are indices."""
_WAITING: Final = frozenset({JobState.QUEUED, JobState.SUSPENDED})
_MAY_GIVE_WAY: Final = frozenset({JobState.RUNNING, JobState.SHRINKING, JobState.SUSPENDED})
_SLACK_S: Final = 1e-6
"""Times are sums: so much short of a bound is at it."""


class Turn(NamedTuple):
    """A job's turn within its tier; no two jobs have equal ones."""

    key: float
    number: int
    job: JobId


class Place(NamedTuple):
    """Where a waiting job queues: jobs of one place are told apart by their turns alone.

    Attributes:
        level: Its class as an index, 0 is the highest; ageing lifts it.
        shape: What it asks for.
        tier: In which of the policy's queues.
        owner: Whose it is.
    """

    level: int
    shape: Shape
    tier: int
    owner: Uid


class Runner(NamedTuple):
    """A running job that may be preempted; in the order of these the last stands worst."""

    level: int
    score: float
    turn: Turn


class Standings:
    """Keeps all live jobs in order. Only the scheduler changes it.

    Args:
        policy: Orders the jobs of a class.
        settings: The lab's rules.
    """

    def __init__(self, policy: Policy, settings: Settings) -> None:
        self.policy = policy
        self.settings = settings
        self.bound_s = settings.bound_s if policy.bound_s is None else policy.bound_s
        self.waiting: list[dict[Shape, dict[tuple[int, Uid], list[Turn]]]] = [{} for _ in CLASSES]
        """By class, shape, tier and owner; each list sorted, never empty."""
        self.overdue: dict[Shape, list[Turn]] = {}
        """Waiting jobs past the bound by shape, in the order in which they came to it; none of the
        lists is empty. They wait in their place too."""
        self.running: dict[JobId, tuple[int, int, Turn]] = {}
        """Running jobs that may be preempted, and suspended ones: class, tier and turn."""
        self.ladders: dict[tuple[Preemption, ...], int] = {}
        """How many of `running` allow each choice of steps; at least 1."""
        self._places: dict[JobId, tuple[Place, Turn]] = {}
        self._overdue_turns: dict[JobId, Turn] = {}
        self._changes: dict[JobId, Seconds] = {}
        self._agenda: list[tuple[Seconds, int, JobId]] = []

    @classmethod
    def of(cls, state: State, policy: Policy, settings: Settings) -> Standings:
        """Finds where the jobs of a state stand.

        Args:
            state: The state; it is not changed.
            policy: Orders the jobs of a class.
            settings: The lab's rules.

        Returns:
            Standings of all live jobs.
        """
        standings = cls(policy, settings)
        for job in state.jobs.values():
            standings.follow(state, job)
        return standings

    def refresh(self, state: State) -> None:
        """Looks again at the jobs whose standing time has changed.

        Args:
            state: The state at its present time.
        """
        while self._agenda and self._agenda[0][0] <= state.at:
            at, _, job_id = heappop(self._agenda)
            if self._changes.get(job_id) == at:
                del self._changes[job_id]
                self.follow(state, state.jobs[job_id])

    def next_change(self) -> Seconds | None:
        """Says when time alone changes a standing next."""
        while self._agenda:
            at, _, job_id = self._agenda[0]
            if self._changes.get(job_id) == at:
                return at
            heappop(self._agenda)
        return None

    def follow(self, state: State, job: Job) -> None:
        """Puts a job where it stands now.

        Args:
            state: The state in which the job is what it is.
            job: Any job.
        """
        known = self._places.pop(job.id, None)
        if known is not None:
            self._leave(job.id, *known)
        if self.running.pop(job.id, None) is not None:
            self._count(job.request.preemption, -1)
        change = None
        if job.state in _WAITING:
            change = self._wait(state, job)
        if job.request.preemption and job.state in _MAY_GIVE_WAY and not job.is_settled:
            self._count(job.request.preemption, 1)
            runs_until = self._run(state, job)
            change = runs_until if change is None else change
        if change is None:
            self._changes.pop(job.id, None)
        elif self._changes.get(job.id) != change:
            self._changes[job.id] = change
            heappush(self._agenda, (change, job.number, job.id))

    def runners(self, state: State) -> list[Runner]:
        """Lists the running jobs that may be preempted.

        Args:
            state: The state; it is not changed.

        Returns:
            The worst standing first.
        """
        scores: dict[tuple[int, int], float] = {}
        runners = []
        for level, tier, turn in self.running.values():
            kind = tier, state.jobs[turn.job].request.gpus
            score = scores.get(kind)
            if score is None:
                score = scores[kind] = self.policy.score(state, *kind)
            runners.append(Runner(level, score, turn))
        runners.sort(reverse=True)
        return runners

    def turn_of(self, state: State, job: Job) -> Turn:
        """Finds a job's turn now."""
        return Turn(self.policy.key(state, job), job.number, job.id)

    def level_of(self, state: State, job: Job) -> int:
        """Says which class a job counts as, as an index; ageing lifts a waiting one by one."""
        level = CLASSES.index(job.request.priority)
        ageing_s = self.settings.ageing_s
        if (
            level
            and ageing_s is not None
            and job.state in _WAITING
            and job.queued_at + ageing_s <= state.at
        ):
            level -= 1
        return level

    def _wait(self, state: State, job: Job) -> Seconds | None:
        """Queues a job; returns when its place changes by time alone."""
        ageing_s = self.settings.ageing_s if job.request.priority is not CLASSES[0] else None
        overdue_at = None
        if self.bound_s is not None:
            overdue_at = state.at + self.bound_s - waited_s(job, state.at)
            if overdue_at <= state.at + _SLACK_S:
                overdue = Turn(overdue_at, job.number, job.id)
                self._overdue_turns[job.id] = overdue
                insort(self.overdue.setdefault(shape_wanted(job), []), overdue)
        level = self.level_of(state, job)
        place = Place(level, shape_wanted(job), self.policy.tier(state, job), job.owner)
        turn = self.turn_of(state, job)
        queues = self.waiting[level].setdefault(place.shape, {})
        insort(queues.setdefault((place.tier, place.owner), []), turn)
        self._places[job.id] = (place, turn)
        lifted_at = None if ageing_s is None else job.queued_at + ageing_s
        times = (at for at in (overdue_at, lifted_at) if at is not None and at > state.at)
        return min(times, default=None)

    def _leave(self, job: JobId, place: Place, turn: Turn) -> None:
        shapes = self.waiting[place.level]
        queues = shapes[place.shape]
        turns = queues[place.tier, place.owner]
        del turns[bisect_left(turns, turn)]
        if not turns:
            del queues[place.tier, place.owner]
            if not queues:
                del shapes[place.shape]
        overdue = self._overdue_turns.pop(job, None)
        if overdue is not None:
            turns = self.overdue[place.shape]
            del turns[bisect_left(turns, overdue)]
            if not turns:
                del self.overdue[place.shape]

    def _count(self, ladder: tuple[Preemption, ...], change: int) -> None:
        left = self.ladders.get(ladder, 0) + change
        if left:
            self.ladders[ladder] = left
        else:
            del self.ladders[ladder]

    def _run(self, state: State, job: Job) -> Seconds | None:
        """Ranks a running job; returns when that, or whether it may be preempted, changes."""
        policy = self.policy
        level = self.level_of(state, job)
        self.running[job.id] = (level, policy.tier(state, job), self.turn_of(state, job))
        if job.started_at is None:  # Of a suspended one time changes only the place in the queue.
            return None
        crossing = crossing_of(job)
        quantum_end = steady_since(job) + self.settings.quantum_s
        times = (policy.next_tier_at(state, job), crossing.at if crossing else None, quantum_end)
        return min((at for at in times if at is not None and at > state.at), default=None)


def in_order(state: State, standings: Standings) -> list[Job]:
    """Lists all waiting jobs in the order in which they are considered.

    Args:
        state: The state; it is not changed.
        standings: Its standings.

    Returns:
        Overdue ones first, then higher classes, then owners' shares, then the policy's order;
        takes time in the length of the queue.
    """
    overdue = sorted(turn for turns in standings.overdue.values() for turn in turns)
    order = [state.jobs[turn.job] for turn in overdue]
    first = {job.id for job in order}
    score, is_fair = standings.policy.score, standings.settings.fair_share
    shares: dict[Uid, int] = {}
    for shapes in standings.waiting:
        turns = []
        for shape, queues in shapes.items():
            for (tier, owner), queue in queues.items():
                if is_fair and owner not in shares:
                    shares[owner] = fairness.share(state, owner)
                rank = (shares.get(owner, 0), score(state, tier, shape.gpus))
                turns += [(rank, turn) for turn in queue]
        order += [state.jobs[turn.job] for _, turn in sorted(turns) if turn.job not in first]
    return order
