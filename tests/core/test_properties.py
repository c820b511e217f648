"""What must hold of the decisions on any history. The model here knows nothing of `State`."""

import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.core.builders import ALICE, BOB, GIB, Lab, gpu, history, same, seen
from tests.core.judges import CORES, GPUS, MEMORY_GIB, RANK
from tests.core.strategies import numbers, owners, picks
from workbench.core.apply import apply
from workbench.core.decisions import Decision, End, Grant, Preempt, Stop
from workbench.core.errors import IllegalEvent, NeverFits
from workbench.core.events import (
    DeviceBusyOutside,
    DispatchHeld,
    DispatchResumed,
    LeaseEnded,
    LeaseStarted,
    Tick,
)
from workbench.core.model import JobId, LeaseId, Outcome, Preemption, PriorityClass, Request, Units
from workbench.core.placement import shape_of
from workbench.core.policy import Bypass
from workbench.core.scheduler import Scheduler
from workbench.core.settings import Quota, Settings
from workbench.core.state import State
from workbench.policies import POLICIES
from workbench.policies.fifo import Fifo

requests = st.fixed_dictionaries(
    {
        "priority": st.sampled_from(PriorityClass),
        "gpus": st.integers(0, 3),
        "cores": st.integers(1, 4),
        "memory_bytes": st.sampled_from([None, 4 * GIB, 9 * GIB]),
        "gpu_memory_bytes": st.sampled_from([None, 30 * GIB, 60 * GIB]),
        "time_limit_s": st.sampled_from([None, 5.0, 20.0, 500.0]),
        "wait_limit_s": st.sampled_from([None, 5.0, 20.0]),
        "expected_s": st.sampled_from([None, 3.0, 30.0, 500.0]),
        "preemption": st.sampled_from([(), (Preemption.CHECKPOINT,), (Preemption.REQUEUE,)]),
    }
)
rules = st.builds(
    Settings,
    bound_s=st.sampled_from([None, 10.0]),
    ageing_s=st.sampled_from([None, 6.0]),
    quantum_s=st.sampled_from([0.0, 4.0]),
    fair_share=st.booleans(),
    high=st.just(Quota()),  # budgets are judged in test_any_requests.py
    idle_grace_s=st.sampled_from([None, 2.0, 9.0]),
    idle_back_s=st.sampled_from([0.0, 4.0]),
)


class AnyLab(RuleBasedStateMachine):
    """Anything happens; the model judges each decision."""

    devices = GPUS

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
            cores=CORES, memory_gib=MEMORY_GIB, agents=agents, policy=self.policy, settings=rules
        )
        self.preempted: dict[str, str] = {}
        self.agents = dict.fromkeys(agents)
        self.requests: dict[str, tuple[int, Request]] = {}
        self.waiting: dict[str, float] = {}
        self.leased: dict[str, Units] = {}
        self.started: dict[str, float] = {}
        self.served: dict[str, float] = {}
        self.cancelled: dict[str, None] = {}
        self.usable: dict[Any, bool] = {}
        self.is_held = False
        for number in range(self.devices):
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
            assert not self.could_ever_fit(self.requests[job][1])
        else:
            assert self.could_ever_fit(self.requests[job][1])
            self.judge(decisions)

    def could_ever_fit(self, request: Request) -> bool:
        return request.gpus <= (2 if request.gpu_memory_bytes == 60 * GIB else GPUS)

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
        self.started.setdefault(job, self.lab.at)
        self.judge(self.lab.start(job))

    @rule(seconds=st.sampled_from([0.0, 5.0]))
    def start_all_and_wait(self, seconds: float) -> None:
        for job in list(self.leased):
            if job in self.leased and job not in self.started:
                self.started[job] = self.lab.at
                self.judge(self.lab.start(job))
        self.wait(seconds)

    @precondition(lambda self: self.leased)
    @rule(pick=picks, outcome=st.sampled_from([Outcome.DONE, Outcome.FAILED, Outcome.KILLED]))
    def end(self, pick: int, outcome: Outcome) -> None:
        job = self.pick(self.leased, pick)
        del self.leased[job]
        since = self.started.pop(job, self.lab.at)
        if self.preempted.pop(job, None) is not None and outcome is Outcome.KILLED:
            self.waiting[job] = self.lab.at
            self.served[job] = self.served.get(job, 0.0) + self.lab.at - since
        self.judge(self.lab.end(job, outcome))

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
            DeviceBusyOutside(at=at, device=gpu(self.devices + pick), reason="uid 1009"),
            Tick(at=self.lab.state.at - 1),
        ):
            with pytest.raises(IllegalEvent):
                self.lab.send(event)

    # --- what must hold --------------------------------------------------------------------

    def rank(self, job: str) -> int:
        return RANK[self.requests[job][1].priority]

    def pick(self, among: dict[str, Any], pick: int) -> str:
        return list(among)[pick % len(among)]

    def judge(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Grant):
                self.judge_grant(decision)
            elif isinstance(decision, Preempt):
                self.judge_preempt(decision)
            else:
                self.judge_end(decision)
        for winner in {decision.winner for decision in decisions if isinstance(decision, Preempt)}:
            self.judge_winner(winner)

    def judge_preempt(self, preempt: Preempt) -> None:
        """Only what runs, may give way, is past its quantum and stands no higher."""
        assert preempt.job in self.started
        assert preempt.winner in self.waiting
        _, victim = self.requests[preempt.job]
        owner, _ = self.requests[preempt.winner]
        assert owner in self.agents
        assert victim.preemption == (preempt.step,)
        assert preempt.at >= self.started[preempt.job] + self.rules.quantum_s
        waits_s = preempt.at - self.waiting[preempt.winner]
        is_aged = self.rules.ageing_s is not None and waits_s >= self.rules.ageing_s
        assert self.rank(preempt.job) >= self.rank(preempt.winner) - is_aged
        if self.rank(preempt.job) <= self.rank(preempt.winner) - is_aged:
            assert self.policy.preempts
        self.preempted[preempt.job] = preempt.winner

    def judge_winner(self, winner: str) -> None:
        """With what is free and what gives way, it fits; without any one of them it does not."""
        _, request = self.requests[winner]
        victims = [job for job, other in self.preempted.items() if other == winner]
        assert self.fits(request, victims)
        if any(other != winner for other in self.preempted.values()):
            return  # What is free may be set apart for the other.
        for spared in victims:
            assert not self.fits(request, [job for job in victims if job != spared])

    def fits(self, request: Request, leaving: list[str]) -> bool:
        kept = [units for job, units in self.leased.items() if job not in leaving]
        return (
            (request.gpus == 0 or (not self.is_held and self.gpus_fit(request, kept)))
            and CORES - sum(units.cores for units in kept) >= request.cores
            and MEMORY_GIB * GIB - sum(units.memory_bytes for units in kept)
            >= (request.memory_bytes or 0)
        )

    def gpus_fit(self, request: Request, kept: list[Units]) -> bool:
        taken = {device for units in kept for device in units.gpus}
        large = (gpu(0), gpu(1)) if (request.gpu_memory_bytes or 0) > 40 * GIB else self.usable
        free = [gpu for gpu, usable in self.usable.items() if usable and gpu not in taken]
        return sum(gpu in large for gpu in free) >= request.gpus

    def judge_grant(self, grant: Grant) -> None:
        owner, request = self.requests[grant.job]
        del self.waiting[grant.job]
        assert owner in self.agents
        assert len(set(grant.units.gpus)) == request.gpus
        assert not (self.is_held and request.gpus)
        self.judge_units(request, grant.units)
        self.leased[grant.job] = grant.units
        if (self.rules.bound_s, self.rules.ageing_s) != (None, None) or self.preempted:
            return
        for job in self.waiting:
            other_owner, other = self.requests[job]
            if other_owner not in self.agents or shape_of(other) != shape_of(request):
                continue
            if self.policy.bypass is not Bypass.GREEDY:
                continue
            assert self.rank(job) >= self.rank(grant.job), f"{job} is of a higher class"
            if self.rank(job) == self.rank(grant.job) and self.policy.name == "fifo":
                assert int(job[1:]) > int(grant.job[1:]), f"{job} came first"

    def judge_units(self, request: Request, granted: Units) -> None:
        for device in granted.gpus:
            assert self.usable[device]
            assert all(device not in units.gpus for units in self.leased.values())
            assert (request.gpu_memory_bytes or 0) <= 40 * GIB or device in (gpu(0), gpu(1))

    def judge_end(self, decision: Stop | End) -> None:
        _, request = self.requests[decision.job]
        if isinstance(decision, End):
            assert decision.outcome is Outcome.CANCELLED or decision.job not in self.served
            since, limit_s = self.waiting.pop(decision.job), request.wait_limit_s
        else:
            assert decision.job in self.leased
            since, limit_s = self.started.get(decision.job, self.lab.at), request.time_limit_s
            since -= self.served.get(decision.job, 0.0)
            self.preempted.pop(decision.job, None)
        if decision.outcome is Outcome.CANCELLED:
            assert decision.job in self.cancelled
        else:
            assert limit_s is not None
            assert decision.at >= since + limit_s

    @invariant()
    def the_host_is_not_handed_out_twice(self) -> None:
        assert sum(units.cores for units in self.leased.values()) <= CORES
        assert sum(units.memory_bytes for units in self.leased.values()) <= MEMORY_GIB * GIB

    @invariant()
    def the_state_knows_the_same_jobs_as_the_model(self) -> None:
        assert list(self.lab.state.leases.values()) == list(self.leased)
        live = [job for job in self.lab.state.jobs if job not in self.leased]
        assert sorted(live) == sorted(self.waiting)

    @invariant()
    def no_deadline_is_overdue(self) -> None:
        wakeup = self.lab.scheduler.next_wakeup()
        assert wakeup is None or wakeup > self.lab.state.at

    def teardown(self) -> None:
        if not hasattr(self, "lab"):
            return
        restored = Scheduler.restore(self.policy, self.lab.entries, settings=self.rules)
        assert same(restored.state, self.lab.state)
        tick = Tick(at=self.lab.at)  # As the driver sends after a restart.
        assert restored.handle(tick) == self.lab.send(tick)
        assert restored.next_wakeup() == self.lab.scheduler.next_wakeup()
        assert restored.unconfirmed() == self.lab.scheduler.unconfirmed()


TestAnyLab = AnyLab.TestCase
TestAnyLab.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_folding_the_journal_gives_the_live_state_at_every_event() -> None:
    entries, folded, live = history().entries, State(), Scheduler(Fifo())
    kinds = {type(entry) for entry in entries}
    assert {Grant, Stop, Preempt, End} <= kinds
    for entry in entries:
        if isinstance(entry, Decision):
            apply(folded, entry)
            continue
        assert same(folded, live.state)
        live.handle(entry)
        apply(folded, entry)
    assert same(folded, live.state)


def test_a_restored_scheduler_decides_as_the_live_one_does() -> None:
    entries = history().entries
    for cut, entry in enumerate(entries):
        if isinstance(entry, Decision):
            continue
        decided = list(takewhile(lambda later: isinstance(later, Decision), entries[cut + 1 :]))
        assert Scheduler.restore(Fifo(), entries[:cut]).handle(entry) == decided


def test_decisions_are_the_same_under_any_hash_seed() -> None:
    script = "from tests.core.builders import history\nprint(*history().entries, sep='\\n')"
    told = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "424242")
    ]
    assert len(told[0]) > 1000
    assert told[0] == told[1] == told[2]
