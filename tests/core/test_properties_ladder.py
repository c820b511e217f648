"""What must hold of shrinking and suspending, and of the way back, on any history."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.core.builders import ALICE, BOB, GIB, Lab, gpu, same, seen
from tests.core.judges import CORES, GPUS, MEMORY_GIB, Judges, without
from tests.core.strategies import numbers, owners, picks, requests, rules
from workbench.core.errors import IllegalEvent, NeverFits
from workbench.core.events import (
    DeviceBusyOutside,
    DispatchHeld,
    DispatchResumed,
    LeaseEnded,
    LeaseGrown,
    LeaseResumed,
    LeaseShrunk,
    LeaseStarted,
    LeaseSuspended,
    Tick,
)
from workbench.core.model import (
    JobId,
    LeaseId,
    Outcome,
    Request,
)
from workbench.core.scheduler import Scheduler
from workbench.core.settings import Settings
from workbench.policies import POLICIES


class LadderLab(Judges, RuleBasedStateMachine):
    """Anything happens; the model judges each decision."""

    @initialize(
        agents=st.sampled_from([(ALICE, BOB), (ALICE,), ()]),
        policy=st.sampled_from(sorted(POLICIES)),
        rules=rules,
        first=st.lists(st.tuples(owners, requests), min_size=4, max_size=10),
        is_running=st.booleans(),
    )
    def open(
        self,
        agents: tuple[Any, ...],
        policy: str,
        rules: Settings,
        first: list[tuple[Any, dict[str, Any]]],
        *,
        is_running: bool,
    ) -> None:
        self.policy, self.rules = POLICIES[policy](), rules
        self.lab = Lab(
            cores=CORES,
            memory_gib=MEMORY_GIB,
            agents=agents,
            policy=self.policy,
            settings=rules,
        )
        self.agents = dict.fromkeys(agents)
        for number in range(GPUS):
            self.see(number)
        for owner, request in first:
            self.submit(owner, request)
            if is_running:
                self.start_all_and_wait(1.0)

    # --- what happens ----------------------------------------------------------------------

    @rule(owner=owners, request=requests)
    def submit(self, owner: Any, request: dict[str, Any]) -> None:
        """A queue is there from the start: Hypothesis often leaves a rule out."""
        job = f"j{len(self.requests)}"
        self.requests[job] = (owner, Request(**request))
        self.waiting[job] = self.lab.at
        try:
            decisions = self.lab.submit(job, owner, **request)
        except NeverFits:
            del self.waiting[job]
            large = 2 if request["gpu_memory_bytes"] == 60 * GIB else GPUS
            assert request["gpus"] > large
        else:
            self.judge(decisions)

    @precondition(lambda self: self.requests)
    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        job = self.pick(self.requests, pick)
        if self.lab.state.find(JobId(job)):
            self.cancelled[job] = None
            self.judge(self.lab.cancel(job))

    @precondition(lambda self: self.leased)
    @rule(pick=picks)
    def start(self, pick: int) -> None:
        job = self.pick(self.leased, pick)
        if job not in self.suspended and job not in self.resuming:
            self.started.setdefault(job, self.lab.at)
        self.judge(self.lab.start(job))

    @rule(seconds=st.sampled_from([0.0, 5.0]))
    def start_all_and_wait(self, seconds: float) -> None:
        for job in list(self.leased):
            if job in self.leased and job not in {**self.started, **self.suspended}:
                if job in self.resuming:
                    self.go_on(job)
                    continue
                self.started[job] = self.lab.at
                self.judge(self.lab.start(job))
        self.wait(seconds)

    @precondition(lambda self: self.leased)
    @rule(pick=picks, outcome=st.sampled_from([Outcome.DONE, Outcome.FAILED, Outcome.KILLED]))
    def end(self, pick: int, outcome: Outcome) -> None:
        self.end_one(self.pick(self.leased, pick), outcome)

    def end_one(self, job: str, outcome: Outcome) -> None:
        del self.leased[job]
        self.forget_steps(job)
        since = self.started.pop(job, self.lab.at)
        if self.preempted.pop(job, None) is not None and outcome is Outcome.KILLED:
            self.waiting[job] = self.lab.at
            self.served[job] = self.served.get(job, 0.0) + self.lab.at - since
        self.judge(self.lab.end(job, outcome))

    @precondition(lambda self: self.leased)
    @rule(pick=picks)
    def shrunk(self, pick: int) -> None:
        """The job gives back what it was asked for; a repeated word changes nothing."""
        job = self.pick(self.shrinking or self.leased, pick)
        shrink = self.shrinking.pop(job, None)
        gpus = shrink.gpus if shrink is not None else ()
        if self.has_started(job):
            self.leased[job] = without(self.leased[job], gpus)
            event = LeaseShrunk(at=self.lab.at, lease=self.lab.lease(job), gpus=gpus)
            self.judge(self.lab.send(event))

    @precondition(lambda self: self.leased)
    @rule(pick=picks)
    def grown(self, pick: int) -> None:
        job = self.pick(self.leased, pick)
        if self.has_started(job):
            self.judge(self.lab.send(LeaseGrown(at=self.lab.at, lease=self.lab.lease(job))))

    @precondition(lambda self: self.leased)
    @rule(pick=picks)
    def stand_still(self, pick: int) -> None:
        job = self.pick(self.suspending or self.leased, pick)
        if not self.has_started(job):
            return
        if self.suspending.pop(job, None) is not None:
            since = self.started.pop(job)
            self.served[job] = self.served.get(job, 0.0) + self.lab.at - since
            self.suspended[job] = self.lab.at
            self.leased[job] = replace(self.leased[job], cores=0)
        self.judge(self.lab.send(LeaseSuspended(at=self.lab.at, lease=self.lab.lease(job))))

    @precondition(lambda self: self.resuming)
    @rule(pick=picks)
    def resumed(self, pick: int) -> None:
        self.go_on(self.pick(self.resuming, pick))

    def go_on(self, job: str) -> None:
        del self.resuming[job]
        self.started[job] = self.lab.at
        self.judge(self.lab.send(LeaseResumed(at=self.lab.at, lease=self.lab.lease(job))))

    def has_started(self, job: str) -> bool:
        return job in self.started or job in self.suspended or job in self.resuming

    @rule(seconds=st.sampled_from([0.0, 1.0, 7.0]))
    def wait(self, seconds: float) -> None:
        self.judge(self.lab.tick(self.lab.at + seconds))

    @rule(seconds=st.sampled_from([1.0, 7.0]))
    def pass_time(self, seconds: float) -> None:
        """The driver is late: the next event comes before the tick that was due."""
        self.lab.at += seconds

    @rule(number=numbers)
    def see(self, number: int) -> None:
        self.usable[gpu(number)] = True
        memory_gib = 80 if number < 2 else 40
        self.judge(self.lab.send(seen(self.lab.at, number, memory_gib=memory_gib)))

    @rule(number=numbers, missing=st.booleans())
    def lose(self, number: int, *, missing: bool) -> None:
        self.usable[gpu(number)] = False
        self.judge(self.lab.lose(number, missing=missing))

    @rule(number=numbers)
    def use_outside(self, number: int) -> None:
        self.usable[gpu(number)] = False
        event = DeviceBusyOutside(at=self.lab.at, device=gpu(number), reason="uid 1009")
        self.judge(self.lab.send(event))

    @rule(is_held=st.booleans())
    def hold(self, *, is_held: bool) -> None:
        self.is_held, at = is_held, self.lab.at
        held = DispatchHeld(at=at, reason="mismatch")
        self.judge(self.lab.send(held if is_held else DispatchResumed(at=at)))

    @rule(owner=owners, is_there=st.booleans())
    def agent(self, owner: Any, *, is_there: bool) -> None:
        if is_there:
            self.agents[owner] = None
            self.judge(self.lab.connect(owner))
        else:
            self.agents.pop(owner, None)
            self.judge(self.lab.disconnect(owner))

    @rule()
    def reboot(self) -> None:
        for job in self.preempted:
            self.waiting[job] = self.lab.at
            since = self.started.get(job, self.lab.at)
            self.served[job] = self.served.get(job, 0.0) + self.lab.at - since
        for job in list(self.leased):
            self.forget_steps(job)
        self.leased.clear()
        self.started.clear()
        self.preempted.clear()
        self.agents.clear()
        self.judge(self.lab.reboot())

    @rule(pick=picks)
    def illegal(self, pick: int) -> None:
        """The lab of the builders checks that the state stays as it was."""
        at, never = self.lab.at, LeaseId(f"L{self.lab.state.next_lease + pick}")
        for event in (
            LeaseStarted(at=at, lease=never),
            LeaseEnded(at=at, lease=never, outcome=Outcome.DONE, detail=""),
            DeviceBusyOutside(at=at, device=gpu(GPUS + pick), reason="uid 1009"),
            Tick(at=self.lab.state.at - 1),
        ):
            with pytest.raises(IllegalEvent):
                self.lab.send(event)

    # --- what must hold --------------------------------------------------------------------

    def pick(self, among: dict[str, Any], pick: int) -> str:
        return list(among)[pick % len(among)]

    @invariant()
    def the_host_is_not_handed_out_twice(self) -> None:
        assert sum(units.cores for units in self.leased.values()) <= CORES
        assert sum(units.memory_bytes for units in self.leased.values()) <= MEMORY_GIB * GIB

    @invariant()
    def the_state_knows_the_same_jobs_as_the_model(self) -> None:
        assert list(self.lab.state.leases.values()) == list(self.leased)
        live = [job for job in self.lab.state.jobs if job not in self.leased]
        assert sorted(live) == sorted(self.waiting)
        for job, units in self.leased.items():
            grant = self.lab.job(job).grant
            assert grant is not None
            assert grant.units == units

    @invariant()
    def nobody_has_fewer_gpus_than_it_can_go_on_with(self) -> None:
        for job, units in self.leased.items():
            _, request = self.requests[job]
            least = request.gpus if request.min_gpus is None else request.min_gpus
            assert least <= len(units.gpus) <= request.gpus

    @invariant()
    def no_deadline_is_overdue(self) -> None:
        wakeup = self.lab.scheduler.next_wakeup()
        assert wakeup is None or wakeup > self.lab.state.at

    def teardown(self) -> None:
        if not hasattr(self, "lab"):
            return
        self.compare_with_the_journal()
        self.all_come_back()

    def all_come_back(self) -> None:
        """The lab empties: who waits or is suspended starts, as soon as what runs has ended."""
        for number in range(GPUS):
            self.see(number)
        self.hold(is_held=False)
        for owner in (ALICE, BOB):
            self.agent(owner, is_there=True)
        for _ in range(2 * len(self.requests) + 2):
            self.start_all_and_wait(0.0)
            for job in list(self.leased):
                if job in self.leased and job not in self.suspended:
                    self.end_one(job, Outcome.KILLED if job in self.preempted else Outcome.DONE)
        assert self.waiting == {}
        assert self.leased == {}

    def compare_with_the_journal(self) -> None:
        restored = Scheduler.restore(self.policy, self.lab.entries, settings=self.rules)
        assert same(restored.state, self.lab.state)
        tick = Tick(at=self.lab.state.at)  # As the driver sends one after a restart.
        assert restored.handle(tick) == self.lab.send(tick)
        assert restored.next_wakeup() == self.lab.scheduler.next_wakeup()
        assert restored.unconfirmed() == self.lab.scheduler.unconfirmed()


TestLadderLab = LadderLab.TestCase
TestLadderLab.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
