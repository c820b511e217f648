"""A lab for the tests of the core: a clock, short names, invariants checked after each event."""

from copy import copy
from dataclasses import fields
from typing import Any

from workbench.core.decide import decide
from workbench.core.decisions import Decision, Grant
from workbench.core.events import (
    AgentConnected,
    AgentLost,
    CancelRequested,
    DeviceLost,
    DeviceSeen,
    Event,
    HostRebooted,
    HostSeen,
    JobSubmitted,
    LeaseEnded,
    LeaseStarted,
    Tick,
)
from workbench.core.invariants import check
from workbench.core.job import Job
from workbench.core.model import (
    DeviceId,
    JobId,
    LeaseId,
    Outcome,
    Preemption,
    PriorityClass,
    Request,
    Uid,
    Units,
)
from workbench.core.placement import Pool
from workbench.core.policy import Policy
from workbench.core.scheduler import Scheduler
from workbench.core.settings import Settings
from workbench.core.standings import Standings
from workbench.core.state import State
from workbench.policies.fifo import Fifo

GIB = 1 << 30
ALICE, BOB = Uid(1001), Uid(1002)
HIGH, NORMAL, LOW = PriorityClass


def gpu(number: int) -> DeviceId:
    return DeviceId(f"GPU-{number:08x}-0000")


def seen(at: float, number: int, *, memory_gib: int | None = 80, **more: Any) -> DeviceSeen:
    return DeviceSeen(
        at=at,
        device=gpu(number),
        memory_bytes=None if memory_gib is None else memory_gib * GIB,
        **{"model": "A100", "simulated": False, **more},
    )


def submitted(at: float, job: str, owner: Uid = ALICE, **request: Any) -> JobSubmitted:
    return JobSubmitted(
        at=at,
        job=JobId(job),
        owner=owner,
        request=Request(**request),
        name=f"name of {job}",
        notebook=None,
    )


class Lab:
    """Drives a scheduler and remembers what a journal would hold."""

    def __init__(
        self,
        *,
        gpus: int = 0,
        cores: int = 16,
        memory_gib: int = 64,
        agents: tuple[Uid, ...] = (ALICE, BOB),
        policy: Policy | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.policy = policy or Fifo()
        self.settings = settings or Settings()
        self.scheduler = Scheduler(self.policy, settings=self.settings)
        self.at = 0.0
        self.entries: list[Event | Decision] = []
        self.send(HostSeen(at=0, cores=cores, memory_bytes=memory_gib * GIB))
        for number in range(gpus):
            self.send(seen(0, number))
        for owner in agents:
            self.send(AgentConnected(at=0, owner=owner))

    @property
    def state(self) -> State:
        return self.scheduler.state

    def send(self, event: Event) -> list[Decision]:
        """Handles an event; a refused one must leave the state as it was."""
        before = copy_of(self.state)
        try:
            decisions = self.scheduler.handle(event)
        except Exception:
            assert same(self.state, before)
            raise
        check(self.state)
        fresh = Standings.of(self.state, self.policy, self.settings)
        kept = self.scheduler.standings
        assert fresh.waiting == kept.waiting
        assert fresh.overdue == kept.overdue
        assert fresh.running == kept.running
        assert fresh.has_preemptible is kept.has_preemptible
        assert (fresh.settled, fresh.firm) == (kept.settled, kept.firm)
        assert fresh.advanced == kept.advanced
        assert fresh.watch.dues == kept.watch.dues
        assert fresh.watch.moves(self.state) == []
        left, _ = decide(self.state, fresh, Pool.of(self.state))
        assert left == [], f"left to decide: {left}"
        self.entries += [event, *decisions]
        self.at = event.at
        return decisions

    def submit(self, job: str, owner: Uid = ALICE, **request: Any) -> list[Decision]:
        return self.send(submitted(self.at, job, owner, **request))

    def cancel(self, job: str, reason: str = "enough") -> list[Decision]:
        return self.send(CancelRequested(at=self.at, job=JobId(job), reason=reason))

    def start(self, job: str) -> list[Decision]:
        return self.send(LeaseStarted(at=self.at, lease=self.lease(job)))

    def end(self, job: str, outcome: Outcome = Outcome.DONE, detail: str = "") -> list[Decision]:
        lease = self.lease(job)
        return self.send(LeaseEnded(at=self.at, lease=lease, outcome=outcome, detail=detail))

    def tick(self, at: float) -> list[Decision]:
        return self.send(Tick(at=at))

    def lose(self, number: int, *, missing: bool = False) -> list[Decision]:
        reason = "not listed" if missing else "Xid 79"
        return self.send(DeviceLost(at=self.at, device=gpu(number), missing=missing, reason=reason))

    def connect(self, owner: Uid) -> list[Decision]:
        return self.send(AgentConnected(at=self.at, owner=owner))

    def disconnect(self, owner: Uid) -> list[Decision]:
        return self.send(AgentLost(at=self.at, owner=owner))

    def reboot(self) -> list[Decision]:
        return self.send(HostRebooted(at=self.at))

    def job(self, job: str) -> Job:
        found = self.state.find(JobId(job))
        assert found is not None
        return found

    def lease(self, job: str) -> LeaseId:
        grant = self.job(job).grant
        assert grant is not None
        return grant.lease

    def worst_first(self) -> list[tuple[int, float, str]]:
        """Class, score and name of the running jobs that may be preempted."""
        return [
            (level, score, str(turn.job))
            for (level, score), turns in self.scheduler.standings.runners(self.state)
            for turn in reversed(turns)
        ]

    def gpus_of(self, job: str) -> list[DeviceId]:
        grant = self.job(job).grant
        return list(grant.units.gpus) if grant else []


def copy_of(state: State) -> State:
    """Copies what is not frozen."""
    return State(**{field.name: copy(getattr(state, field.name)) for field in fields(state)})


def same(one: State, other: State) -> bool:
    """Compares two states, the order of what they list included."""
    orders = [
        [list(getattr(state, name)) for name in ("devices", "agents", "jobs", "ended", "leases")]
        for state in (one, other)
    ]
    return one == other and orders[0] == orders[1]


def grant(id_: int, at: float, lease: int, job: str, units: Units, reason: str = "") -> Grant:
    return Grant(
        id=id_,
        at=at,
        lease=LeaseId(f"L{lease}"),
        job=JobId(job),
        units=units,
        reason=reason or "class normal: it is its turn",
    )


def jobs_of(decisions: list[Decision]) -> list[str]:
    return [str(decision.job) for decision in decisions]


def history() -> Lab:
    """A history with every kind of decision in it."""
    lab = Lab(gpus=3, cores=6)
    for number in range(12):
        limits = {"time_limit_s": 5.0 + number, "wait_limit_s": 9.0 if number % 4 == 3 else None}
        lab.submit(
            f"j{number}", (ALICE, BOB)[number % 2], gpus=number % 3, cores=1 + number % 2, **limits
        )
    for at in range(1, 20):
        lab.tick(float(at))
        for job in list(lab.state.leases.values())[: at % 3]:
            lab.start(job)
            if at % 4 == 0:
                lab.end(job)
        if at == 6:
            lab.cancel("j10")
            lab.lose(1)
    for job in list(lab.state.jobs):
        lab.cancel(job)
    for job in list(lab.state.leases.values()):
        lab.end(job)
    lab.submit("victim", gpus=2, preemption=(Preemption.REQUEUE,))
    lab.start("victim")
    lab.tick(100.0)
    lab.submit("winner", BOB, gpus=1, priority=HIGH)
    lab.end("victim", Outcome.KILLED)
    return lab
