"""Where every live job stands: the waiting ones in order, the running ones worst first.

It is derived from the state, the policy and the settings: the journal knows nothing of it, so that
another policy may order the same history. With it an event looks at one job of each shape and
owner, however long the queue is.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from heapq import heappop, heappush
from typing import Final, NamedTuple

from workbench.core import fairness
from workbench.core.job import Job, crossing_of, waited_s
from workbench.core.model import JobId, JobState, PriorityClass, Seconds, Shape, Uid
from workbench.core.placement import shape_of
from workbench.core.policy import Policy
from workbench.core.settings import Settings
from workbench.core.state import State

CLASSES: Final = tuple(PriorityClass)
OVERDUE: Final = -1
"""Stands for a class before all others, where classes are indices."""
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


class Kind(NamedTuple):
    """What running jobs have in common that stand alike but for their turns.

    Attributes:
        level: Their class as an index.
        tier: In which of the policy's queues.
        gpus: What they ask for.
    """

    level: int
    tier: int
    gpus: int


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
        self.waiting: list[dict[Shape, dict[int, dict[Uid, list[Turn]]]]] = [{} for _ in CLASSES]
        """By class, shape, tier and owner; each list sorted, never empty."""
        self.overdue: dict[Shape, list[Turn]] = {}
        """Waiting jobs past the bound by shape, in the order in which they came to it; none of the
        lists is empty. They wait in their place too."""
        self.running: dict[Kind, list[Turn]] = {}
        """Running jobs that may be preempted now; each list sorted, never empty."""
        self.settled: dict[JobId, Shape] = {}
        """What those that hold a lease and are settled asked for."""
        self.firm: dict[JobId, None] = {}
        """Those that hold a lease and allow no preemption."""
        self._places: dict[JobId, tuple[Place, Turn]] = {}
        self._kinds: dict[JobId, tuple[Kind, Turn] | None] = {}
        """Of running jobs that may be preempted; None until their quantum is over."""
        self._overdue_turns: dict[JobId, tuple[Shape, Turn]] = {}
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

    @property
    def has_preemptible(self) -> bool:
        """Whether a job runs that may be preempted, be it only after its quantum."""
        return bool(self._kinds)

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
            self._leave(*known)
        overdue = self._overdue_turns.pop(job.id, None)
        if overdue is not None:
            shape, late = overdue
            turns = self.overdue[shape]
            del turns[bisect_left(turns, late)]
            if not turns:
                del self.overdue[shape]
        ran = self._kinds.pop(job.id, None)
        if ran is not None:
            self._stop(*ran)
        self.settled.pop(job.id, None)
        self.firm.pop(job.id, None)
        if job.state is not JobState.QUEUED and job.state is not JobState.ENDED:
            self._hold(job)
        change = None
        if job.state is JobState.QUEUED:
            change = self._wait(state, job)
        elif job.state is JobState.RUNNING and job.request.preemption and not job.is_settled:
            change = self._run(state, job)
        if change is None:
            self._changes.pop(job.id, None)
        elif self._changes.get(job.id) != change:
            self._changes[job.id] = change
            heappush(self._agenda, (change, job.number, job.id))

    def runners(self, state: State) -> list[tuple[tuple[int, float], list[Turn]]]:
        """Lists the running jobs that may be preempted.

        Args:
            state: The state; it is not changed.

        Returns:
            Class and score, each with the turns of all who have them, sorted; the worst first.
        """
        score = self.policy.score
        runners: dict[tuple[int, float], list[Turn]] = {}
        for (level, tier, gpus), turns in self.running.items():
            rank = level, score(state, tier, gpus)
            alike = runners.get(rank)
            runners[rank] = turns if alike is None else sorted(alike + turns)
        return sorted(runners.items(), reverse=True)

    def shares(self, state: State) -> dict[Uid, int]:
        """Ranks owners by use, for as long as the state stays as it is.

        Args:
            state: The state; it is not changed.

        Returns:
            0 for each where the lab has no fair share.
        """
        return fairness.Shares(state) if self.settings.fair_share else defaultdict(int)

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
            and job.state is JobState.QUEUED
            and job.queued_at + ageing_s <= state.at
        ):
            level -= 1
        return level

    def _wait(self, state: State, job: Job) -> Seconds | None:
        """Queues a job; returns when its place changes by time alone."""
        ageing_s = self.settings.ageing_s if job.request.priority is not CLASSES[0] else None
        shape = shape_of(job.request)
        overdue_at = None
        if self.bound_s is not None:
            overdue_at = state.at + self.bound_s - waited_s(job, state.at)
            if overdue_at <= state.at + _SLACK_S:
                overdue = Turn(overdue_at, job.number, job.id)
                self._overdue_turns[job.id] = (shape, overdue)
                insort(self.overdue.setdefault(shape, []), overdue)
        level = self.level_of(state, job)
        place = Place(level, shape, self.policy.tier(state, job), job.owner)
        turn = self.turn_of(state, job)
        owners = self.waiting[level].setdefault(shape, {}).setdefault(place.tier, {})
        insort(owners.setdefault(place.owner, []), turn)
        self._places[job.id] = (place, turn)
        lifted_at = None if ageing_s is None else job.queued_at + ageing_s
        times = (at for at in (overdue_at, lifted_at) if at is not None and at > state.at)
        return min(times, default=None)

    def _hold(self, job: Job) -> None:
        """Notes whether others have to wait until a job that holds a lease ends."""
        if job.is_settled:
            self.settled[job.id] = shape_of(job.request)
        if not job.request.preemption:
            self.firm[job.id] = None

    def _leave(self, place: Place, turn: Turn) -> None:
        shapes = self.waiting[place.level]
        tiers = shapes[place.shape]
        owners = tiers[place.tier]
        turns = owners[place.owner]
        del turns[bisect_left(turns, turn)]
        if not turns:
            del owners[place.owner]
            if not owners:
                del tiers[place.tier]
                if not tiers:
                    del shapes[place.shape]

    def _run(self, state: State, job: Job) -> Seconds | None:
        """Ranks a running job; returns when that, or whether it may be preempted, changes."""
        policy = self.policy
        quantum_end = (job.started_at or 0.0) + self.settings.quantum_s
        if quantum_end > state.at:
            self._kinds[job.id] = None
            return quantum_end
        kind = Kind(self.level_of(state, job), policy.tier(state, job), job.request.gpus)
        turn = self.turn_of(state, job)
        insort(self.running.setdefault(kind, []), turn)
        self._kinds[job.id] = (kind, turn)
        crossing = crossing_of(job)
        times = (policy.next_tier_at(state, job), crossing.at if crossing else None)
        return min((at for at in times if at is not None and at > state.at), default=None)

    def _stop(self, kind: Kind, turn: Turn) -> None:
        turns = self.running[kind]
        del turns[bisect_left(turns, turn)]
        if not turns:
            del self.running[kind]


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
    score = standings.policy.score
    shares = standings.shares(state)
    for shapes in standings.waiting:
        turns = []
        for shape, tiers in shapes.items():
            for tier, owners in tiers.items():
                for owner, queue in owners.items():
                    rank = (shares[owner], score(state, tier, shape.gpus))
                    turns += [(rank, turn) for turn in queue]
        order += [state.jobs[turn.job] for _, turn in sorted(turns) if turn.job not in first]
    return order
