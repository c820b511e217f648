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
from workbench.core.job import Job, crossing_of, is_put_off, steady_since, stopping_step, waited_s
from workbench.core.model import (
    JobId,
    JobState,
    Preemption,
    PriorityClass,
    Seconds,
    Shape,
    Uid,
)
from workbench.core.moving import Watch, is_lowered
from workbench.core.placement import shapes_of, shapes_wanted
from workbench.core.policy import Policy
from workbench.core.quotas import Account, Limits, counts_as
from workbench.core.settings import Settings
from workbench.core.state import State

CLASSES: Final = tuple(PriorityClass)
OVERDUE: Final = -1
"""Stands for a class before all others, where classes are indices."""
PLAIN: Final = (Preemption.CHECKPOINT,)
"""What most jobs allow that give way at all."""
_SLACK_S: Final = 1e-6
"""Times are sums: so much short of a bound is at it."""


Shapes = tuple[Shape, ...]
"""What would do for a job, the preferred first; jobs of equal ones fit or do not fit together."""


class Turn(NamedTuple):
    """A job's turn within its tier; no two jobs have equal ones."""

    key: float
    number: int
    job: JobId


class Place(NamedTuple):
    """Where a waiting job queues: jobs of one place are told apart by their turns alone.

    Attributes:
        level: Its class as an index, 0 is the highest; ageing lifts it.
        shapes: What would do, the preferred first.
        tier: In which of the policy's queues.
        account: Whose limits it counts against.
    """

    level: int
    shapes: Shapes
    tier: int
    account: Account


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
        self.waiting: list[dict[Shapes, dict[int, dict[Account, list[Turn]]]]] = [
            {} for _ in range(len(CLASSES) + 1)
        ]
        """By class (last what is below all classes), shapes, tier and account; each list sorted,
        never empty."""
        self.overdue: dict[Shapes, dict[Account, list[Turn]]] = {}
        """Waiting jobs past the bound by shapes and account, in the order in which they came to it;
        none of the lists is empty. They wait in their place too."""
        self.running: dict[Kind, list[Turn]] = {}
        """Jobs that may be preempted now, suspended ones too; each list sorted, never empty."""
        self.ladders: dict[tuple[Preemption, ...], int] = {}
        """How many of `running` allow each choice of steps but `PLAIN`; at least 1."""
        self.settled: dict[JobId, Shape] = {}
        """What those that hold a lease and are settled asked for."""
        self.firm: dict[JobId, None] = {}
        """Those that hold a lease and give it up for nobody."""
        self._places: dict[JobId, tuple[Place, Turn]] = {}
        self._kinds: dict[JobId, tuple[Kind, Turn] | None] = {}
        """Of running jobs that may be preempted; None until their quantum is over."""
        self._overdue_turns: dict[JobId, Turn] = {}
        self._changes: dict[JobId, Seconds] = {}
        self._agenda: list[tuple[Seconds, int, JobId]] = []
        self.advanced: dict[JobId, float] = {}
        """Running jobs that may be preempted and have said how far they are: less that part."""
        self.watch = Watch(settings)
        """When jobs are warned, lowered or raised next."""

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
        self._forget(job)
        if job.state is not JobState.QUEUED and job.state is not JobState.ENDED:
            self._hold(job)
        if job.use is not None or self.watch.dues:
            self.watch.follow(job)
        change = None
        if job.state is JobState.QUEUED:
            change = self._wait(state, job)
        elif job.state is JobState.RUNNING:
            if job.request.preemption and not job.is_settled:
                change = self._run(state, job)
        elif job.state is JobState.SHRINKING or job.state is JobState.SUSPENDED:
            change = self._stand_still(state, job)
        if change is None:
            self._changes.pop(job.id, None)
        elif self._changes.get(job.id) != change:
            self._changes[job.id] = change
            heappush(self._agenda, (change, job.number, job.id))

    def _forget(self, job: Job) -> None:
        """Takes a job out of all that it is filed in."""
        known = self._places.pop(job.id, None)
        if known is not None:
            self._leave(*known)
            overdue = self._overdue_turns.pop(job.id, None)
            if overdue is not None:
                self._leave_overdue(known[0], overdue)
        ran = self._kinds.pop(job.id, None)
        if ran is not None:
            self._stop(*ran)
            if job.request.preemption != PLAIN:
                self._count(job.request.preemption, -1)
        self.settled.pop(job.id, None)
        self.firm.pop(job.id, None)
        if self.advanced:
            self.advanced.pop(job.id, None)

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
        if self.advanced:  # Of those alike, who is further stands higher.
            runners = {rank: sorted(turns, key=self._rank) for rank, turns in runners.items()}
        return sorted(runners.items(), reverse=True)

    def _rank(self, turn: Turn) -> tuple[float, Turn]:
        return self.advanced.get(turn.job, 0.0), turn

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
        """Says which class a job counts as, as an index; one past the last is below all classes.

        Low use lowers a job by one, until it is raised or has other units; ageing lifts a waiting
        one by one.
        """
        level = CLASSES.index(counts_as(job))
        if job.use is not None and is_lowered(job):
            level += 1
        ageing_s = self.settings.ageing_s
        if (
            level
            and ageing_s is not None
            and (job.state is JobState.QUEUED or job.state is JobState.SUSPENDED)
            and job.queued_at + ageing_s <= state.at
        ):
            level -= 1
        return level

    def _wait(self, state: State, job: Job) -> Seconds | None:
        """Queues a job; returns when its place changes by time alone."""
        if is_put_off(job, state.at):
            return job.queued_at if job.put_off_at is None else None
        shapes = shapes_of(job.request) if job.grant is None else shapes_wanted(job)
        account = Account.of(job)
        is_first = job.request.priority is CLASSES[0] and job.use is None
        ageing_s = None if is_first else self.settings.ageing_s
        overdue_at = None
        if self.bound_s is not None:
            overdue_at = state.at + self.bound_s - waited_s(job, state.at)
            if overdue_at <= state.at + _SLACK_S:
                overdue = Turn(overdue_at, job.number, job.id)
                self._overdue_turns[job.id] = overdue
                insort(self.overdue.setdefault(shapes, {}).setdefault(account, []), overdue)
        level = self.level_of(state, job)
        place = Place(level, shapes, self.policy.tier(state, job), account)
        turn = self.turn_of(state, job)
        accounts = self.waiting[level].setdefault(shapes, {}).setdefault(place.tier, {})
        insort(accounts.setdefault(account, []), turn)
        self._places[job.id] = (place, turn)
        lifted_at = None if ageing_s is None else job.queued_at + ageing_s
        times = (at for at in (overdue_at, lifted_at) if at is not None and at > state.at)
        return min(times, default=None)

    def _hold(self, job: Job) -> None:
        """Notes whether others have to wait until a job that holds a lease ends."""
        if job.is_settled:
            self.settled[job.id] = shapes_of(job.request)[0]
        if job.request.preemption != PLAIN and stopping_step(job.request) is None:
            self.firm[job.id] = None

    def _leave(self, place: Place, turn: Turn) -> None:
        shapes = self.waiting[place.level]
        tiers = shapes[place.shapes]
        accounts = tiers[place.tier]
        turns = accounts[place.account]
        del turns[bisect_left(turns, turn)]
        if not turns:
            del accounts[place.account]
            if not accounts:
                del tiers[place.tier]
                if not tiers:
                    del shapes[place.shapes]

    def _leave_overdue(self, place: Place, turn: Turn) -> None:
        shapes, account = place.shapes, place.account
        accounts = self.overdue[shapes]
        turns = accounts[account]
        del turns[bisect_left(turns, turn)]
        if not turns:
            del accounts[account]
            if not accounts:
                del self.overdue[shapes]

    def _stand_still(self, state: State, job: Job) -> Seconds | None:
        """Ranks a job on a milder step; returns when time alone changes where it stands."""
        change = self._wait(state, job) if job.state is JobState.SUSPENDED else None
        if job.request.preemption and not job.is_settled:
            times = (change, self._run(state, job))
            change = min((at for at in times if at is not None), default=None)
        return change

    def _run(self, state: State, job: Job) -> Seconds | None:
        """Ranks a running job; returns when that, or whether it may be preempted, changes."""
        policy = self.policy
        since = (job.started_at or 0.0) if job.ladder is None else steady_since(job)
        quantum_end = since + self.settings.quantum_s
        if quantum_end > state.at:
            self._kinds[job.id] = None
            return quantum_end
        kind = Kind(self.level_of(state, job), policy.tier(state, job), job.request.gpus)
        turn = self.turn_of(state, job)
        insort(self.running.setdefault(kind, []), turn)
        self._kinds[job.id] = (kind, turn)
        if job.request.preemption != PLAIN:
            self._count(job.request.preemption, 1)
        if job.progress is not None:
            self.advanced[job.id] = -job.progress.part
        if job.started_at is None:  # Of a suspended one time changes only the place in the queue.
            return None
        crossing = crossing_of(job)
        times = (policy.next_tier_at(state, job), crossing.at if crossing else None)
        return min((at for at in times if at is not None and at > state.at), default=None)

    def _count(self, ladder: tuple[Preemption, ...], change: int) -> None:
        left = self.ladders.get(ladder, 0) + change
        if left:
            self.ladders[ladder] = left
        else:
            del self.ladders[ladder]

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
        Overdue ones first, then higher classes, then by `fairness.rank`; takes time in the
        length of the queue. Not those that are put off.
    """
    overdue = sorted(
        turn
        for accounts in standings.overdue.values()
        for turns in accounts.values()
        for turn in turns
    )
    order = [state.jobs[turn.job] for turn in overdue]
    first = {job.id for job in order}
    score = standings.policy.score
    shares = standings.shares(state)
    limits = Limits(state, standings.settings)
    later: list[tuple[float, Turn]] = []
    for level, places in enumerate(standings.waiting):
        turns, later = later, []
        for shapes, tiers in places.items():
            for tier, accounts in tiers.items():
                for account, queue in accounts.items():
                    owner = account.owner
                    rank = fairness.rank(score(state, tier, shapes[0].gpus), shares[owner])
                    is_later = level == 0 and account.is_high and not limits.may_be_high(owner)
                    (later if is_later else turns).extend((rank, turn) for turn in queue)
        order += [state.jobs[turn.job] for _, turn in sorted(turns) if turn.job not in first]
    return order
