"""The other driver of the core: a heap of endings in place of a host, and no clock.

What happens at one instant is folded together and decided on once: endings first, so that what
they free is there for those that come.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, Literal, assert_never

from workbench.core.decisions import (
    Decision,
    Grant,
    Grow,
    Lower,
    Preempt,
    Raise,
    Resume,
    Shrink,
    Step,
    Suspend,
    Warn,
)
from workbench.core.errors import BugError
from workbench.core.events import (
    AgentConnected,
    DeviceSeen,
    Event,
    HostSeen,
    JobSubmitted,
    LeaseEnded,
    LeaseGrown,
    LeaseResumed,
    LeaseShrunk,
    LeaseStarted,
    LeaseSuspended,
    Tick,
)
from workbench.core.model import (
    DeviceId,
    JobId,
    JobKind,
    LeaseId,
    Outcome,
    Preemption,
    PriorityClass,
    Request,
    Seconds,
    Uid,
)
from workbench.core.policy import Policy
from workbench.core.scheduler import Scheduler
from workbench.core.settings import Settings
from workbench.policies import POLICIES
from workbench.simulate.measures import Measure, measures
from workbench.simulate.metrics import Record, Stint
from workbench.simulate.progress import Progress
from workbench.simulate.workload import Cluster, SimJob, Workload

_PLENTY: Final = 1 << 60
"""Of cores and memory: a trace says nothing of them."""
_NEVER: Final = float("inf")
_OF_A_LEASE: Final = (Grant, Preempt, Shrink, Grow, Suspend, Resume)
_RIGID: Final = (Preemption.CHECKPOINT,)
_ELASTIC: Final = (Preemption.SHRINK, Preemption.CHECKPOINT)

Listener = Callable[[Event | Decision], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What became of a workload.

    Attributes:
        records: One for each job, in the order of the workload.
        events: How many the core handled.
        wall_s: How long that took on this machine.
        notices: What it decided about jobs beyond starting them, in order.
    """

    records: tuple[Record, ...]
    events: int
    wall_s: float
    notices: tuple[Decision, ...] = ()


def simulate(
    workload: Workload,
    cluster: Cluster,
    *,
    policy: str,
    placement: Literal["pool", "nodes"],
    fair_share: bool,
    restart_cost_s: Seconds,
    listener: Listener | None = None,
) -> Replay:
    """Replays a workload on the core that also runs the lab.

    Jobs may be preempted at any moment, keep what they did, and hold their GPUs for
    `restart_cost_s` longer each time. Those that say how far may be shrunk instead, which costs
    nothing: with a part of its GPUs a job runs at that part of its speed. A policy that orders by
    run times is told the true ones; no other is. The core's own bound on waiting and its ageing
    are off, as in what is published of these policies; the default policy has a bound of its own.

    Args:
        workload: No job wants more GPUs than the cluster has.
        cluster: What it runs on.
        policy: A name in `POLICIES`.
        placement: `nodes` never spreads a gang that fits on one node; in a `pool` any GPU will do.
        fair_share: Whether owners who used less lately come first.
        restart_cost_s: What a preemption costs.
        listener: Is told each event and decision, in the order in which a journal has them.

    Returns:
        What became of each job.
    """
    chosen = POLICIES[policy]()
    settings = Settings(bound_s=None, ageing_s=None, fair_share=fair_share)
    run = Run(workload, chosen, settings, restart_cost_s, listener)
    begun = time.perf_counter()
    run.open(cluster, is_pool=placement == "pool")
    run.play()
    wall_s = time.perf_counter() - begun
    return Replay(
        records=run.records(), events=run.events, wall_s=wall_s, notices=tuple(run.notices)
    )


class Run:
    """One replay: tells the core what happens and carries out what it decides.

    Args:
        workload: What is replayed.
        policy: Orders the jobs.
        settings: The lab's rules.
        restart_cost_s: What a preemption costs.
        listener: Is told each event and decision.
    """

    def __init__(
        self,
        workload: Workload,
        policy: Policy,
        settings: Settings,
        restart_cost_s: Seconds,
        listener: Listener | None = None,
    ) -> None:
        self.events = 0
        self.notices: list[Decision] = []
        self._listener = listener
        self._policy = policy
        self._scheduler = Scheduler(policy, settings=settings)
        self._restart_cost_s = restart_cost_s
        users = dict.fromkeys(job.user for job in workload.jobs)
        self._owners = {user: Uid(number) for number, user in enumerate(users, start=1)}
        self._jobs = {
            JobId(job.id): Progress(job=job, owner=self._owners[job.user], left_s=job.service_s)
            for job in workload.jobs
        }
        self._requests: dict[tuple[int, int | None, PriorityClass, Seconds | None], Request] = {}
        self._coming = deque(self._jobs)
        self._endings: list[tuple[Seconds, int, JobId, LeaseId]] = []
        self._measures: list[tuple[Seconds, int, JobId, Measure, Iterator[Measure]]] = []

    def open(self, cluster: Cluster, *, is_pool: bool) -> None:
        """Tells the core what there is, before the first job."""
        at = min(0.0, self._jobs[self._coming[0]].job.submit_s)
        self.fold(HostSeen(at=at, cores=_PLENTY, memory_bytes=_PLENTY))
        for node in range(cluster.nodes):
            for number in range(cluster.gpus_per_node):
                name = f"node{node}/gpu{number}"
                self.fold(
                    DeviceSeen(
                        at=at,
                        device=DeviceId(name),
                        model="",
                        memory_bytes=None,
                        simulated=True,
                        node="" if is_pool else f"node{node}",
                    )
                )
        for owner in self._owners.values():
            self.fold(AgentConnected(at=at, owner=owner))
        self.carry_out(self.decide(), at)

    def play(self) -> None:
        """Plays until all jobs are done."""
        while self._coming or self._endings:  # Without these nothing is left to measure.
            at = self._next_at()
            wakeup = self._scheduler.next_wakeup()
            if wakeup is not None and wakeup < at:
                self.fold(Tick(at=wakeup))
                self.carry_out(self.decide(), wakeup)
                continue
            if at == _NEVER:
                break
            while self.end_due(at):
                pass
            while self.measure_due(at):
                pass
            self._submit_those_due(at)
            self.carry_out(self.decide(), at)

    def records(self) -> tuple[Record, ...]:
        """Says what became of each job, in the order of the workload."""
        return tuple(_record(progress) for progress in self._jobs.values())

    def _next_at(self) -> Seconds:
        while self._endings and self._is_stale(self._endings[0]):
            heappop(self._endings)
        ending = self._endings[0][0] if self._endings else _NEVER
        coming = self._jobs[self._coming[0]].job.submit_s if self._coming else _NEVER
        while (
            self._measures and self._jobs[self._measures[0][2]].lease != self._measures[0][3].lease
        ):
            heappop(self._measures)
        measure = self._measures[0][0] if self._measures else _NEVER
        return min(ending, coming, measure)

    def _is_stale(self, ending: tuple[Seconds, int, JobId, LeaseId]) -> bool:
        """Whether the job stopped, or went on at another speed, before it was done."""
        return self._jobs[ending[2]].ending != ending[1]

    def end_due(self, at: Seconds) -> bool:
        """Ends the next job that is done by now; tells whether there was one."""
        while self._endings and self._endings[0][0] <= at:
            ending = heappop(self._endings)
            if self._is_stale(ending):
                continue
            progress = self._jobs[ending[2]]
            self._pause(progress, at)
            progress.end_s, progress.lease = at, None
            self.fold(LeaseEnded(at=at, lease=ending[3], outcome=Outcome.DONE, detail=""))
            return True
        return False

    def measure_due(self, at: Seconds) -> bool:
        """Tells the core of the next that is measured of a lease by now, if there is any."""
        while self._measures and self._measures[0][0] <= at:
            _, number, job, measure, following = heappop(self._measures)
            if self._jobs[job].lease != measure.lease:
                continue
            self._measure_next(number, job, following)
            self.fold(measure)
            return True
        return False

    def _measure_next(self, number: int, job: JobId, following: Iterator[Measure]) -> None:
        measure = next(following, None)
        if measure is not None:
            heappush(self._measures, (measure.at, number, job, measure, following))

    def _submit_those_due(self, at: Seconds) -> None:
        while self._coming and self._jobs[self._coming[0]].job.submit_s <= at:
            job = self._coming.popleft()
            progress = self._jobs[job]
            self.fold(
                JobSubmitted(
                    at=at,
                    job=job,
                    owner=progress.owner,
                    request=self.request_of(progress.job),
                    name="",
                    notebook=None,
                )
            )

    def request_of(self, job: SimJob) -> Request:
        """Makes a job's request; jobs that are told alike have one between them."""
        told_s = job.service_s if self._policy.asks_run_times else None
        key = job.gpus, job.min_gpus, job.priority, told_s
        known = self._requests.get(key)
        if known is None:
            known = self._requests[key] = Request(
                kind=JobKind.COMMAND,
                priority=job.priority,
                gpus=job.gpus,
                min_gpus=job.min_gpus,
                expected_s=told_s,
                preemption=_RIGID if job.min_gpus is None else _ELASTIC,
            )
        return known

    def carry_out(self, decisions: Iterable[Decision], at: Seconds) -> None:
        """Confirms each wish at once; what that leads to is carried out likewise."""
        todo = deque(decisions)
        while todo:
            decision = todo.popleft()
            if not isinstance(decision, Grant):
                self.notices.append(decision)
            if isinstance(decision, _OF_A_LEASE):
                self.fold(self._confirmation(decision, self._jobs[decision.job], at))
            elif not isinstance(decision, Warn | Lower | Raise):  # Those are for people to read.
                raise BugError(f"nothing in a trace asks for {decision}")
            todo.extend(self.decide())

    def _confirmation(
        self,
        decision: Grant | Preempt | Step,
        progress: Progress,
        at: Seconds,
    ) -> Event:
        """Does what is wished, and says so."""
        lease = decision.lease
        if isinstance(decision, Grant):
            progress.lease = lease
            self._go_on(progress, decision, at, decision.units.gpus)
            self._measure(progress, decision, at)
            return LeaseStarted(at=at, lease=lease)
        if isinstance(decision, Resume):
            self._go_on(progress, decision, at, progress.gpus)
            return LeaseResumed(at=at, lease=lease)
        self._pause(progress, at, self._restart_cost_s if isinstance(decision, Preempt) else 0.0)
        if isinstance(decision, Preempt):
            progress.preemptions += 1
            progress.lease = None
            return LeaseEnded(at=at, lease=lease, outcome=Outcome.KILLED, detail="")
        if isinstance(decision, Suspend):
            progress.suspensions += 1
            return LeaseSuspended(at=at, lease=lease)
        if isinstance(decision, Shrink):
            progress.shrinks += 1
            left = tuple(gpu for gpu in progress.gpus if gpu not in decision.gpus)
            self._go_on(progress, decision, at, left)
            return LeaseShrunk(at=at, lease=lease, gpus=decision.gpus)
        if isinstance(decision, Grow):
            self._go_on(progress, decision, at, progress.gpus + decision.gpus)
            return LeaseGrown(at=at, lease=lease)
        assert_never(decision)

    def _measure(self, progress: Progress, grant: Grant, at: Seconds) -> None:
        if progress.job.idle_from_s is not None or progress.job.reports_progress:
            begin_s = at - (progress.job.service_s - progress.left_s)
            following = measures(progress.job, grant.lease, at, begin_s)
            self._measure_next(grant.id, grant.job, following)

    def _go_on(
        self,
        progress: Progress,
        decision: Grant | Shrink | Grow | Resume,
        at: Seconds,
        gpus: tuple[DeviceId, ...],
    ) -> None:
        progress.gpus, progress.started_s, progress.ending = gpus, at, decision.id
        end_s = at + progress.left_s / progress.speed
        heappush(self._endings, (end_s, decision.id, decision.job, decision.lease))

    def _pause(self, progress: Progress, at: Seconds, cost_s: Seconds = 0.0) -> None:
        if progress.ending is not None:
            progress.ending = None
            progress.left_s += cost_s - (at - progress.started_s) * progress.speed
            stint = Stint(start_s=progress.started_s, end_s=at, gpus=progress.gpus)
            progress.stints.append(stint)

    def decide(self) -> list[Decision]:
        """Asks the core what the latest events call for."""
        decisions = self._scheduler.decide()
        if self._listener is not None:
            for decision in decisions:
                self._listener(decision)
        return decisions

    def fold(self, event: Event) -> None:
        """Tells the core of an event."""
        self.events += 1
        self._scheduler.fold(event)
        if self._listener is not None:
            self._listener(event)


def _record(progress: Progress) -> Record:
    if progress.end_s == _NEVER:
        raise BugError(f"job {progress.job.id} was never done")
    return Record(
        job=progress.job,
        first_start_s=progress.stints[0].start_s,
        end_s=progress.end_s,
        stints=tuple(progress.stints),
        preemptions=progress.preemptions,
        shrinks=progress.shrinks,
        suspensions=progress.suspensions,
    )
