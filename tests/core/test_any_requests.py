"""What must hold of any history of holds, times, dependencies, tries, arrays, quotas, budgets."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.core.builders import ALICE, BOB, HIGH, Lab, same
from workbench.core.decisions import Decision, End, Grant, Preempt, Stop
from workbench.core.events import HoldRequested, JobSubmitted, ReleaseRequested, Tick
from workbench.core.model import (
    After,
    Array,
    Dependency,
    JobId,
    JobState,
    Outcome,
    Preemption,
    PriorityClass,
    Request,
    Shape,
)
from workbench.core.placement import shapes_of
from workbench.core.scheduler import Scheduler
from workbench.core.settings import Quota, Settings
from workbench.policies import POLICIES

GPUS, CORES = 3, 6
WEEK_S = 7 * 24 * 3600.0
RETRIED = {Outcome.FAILED, Outcome.KILLED, Outcome.LOST}

wishes = st.fixed_dictionaries(
    {
        "priority": st.sampled_from(PriorityClass),
        "gpus": st.integers(0, 2),
        "cores": st.integers(1, 3),
        "alternatives": st.sampled_from([(), (Shape(0, 0, 4, 0),), (Shape(1, 0, 1, 0),)]),
        "start_after_s": st.sampled_from([None, None, 5.0]),
        "is_held": st.sampled_from([False, False, False, True]),
        "array": st.sampled_from([None, None, Array("one", 1), Array("two", 2)]),
        "retries": st.integers(0, 2),
        "retry_delay_s": st.just(3.0),
        "preemption": st.sampled_from([(), (Preemption.REQUEUE,)]),
    }
)
quotas = st.builds(
    Quota,
    leases=st.sampled_from([None, 1, 3]),
    gpus=st.sampled_from([None, 2]),
    gpu_hours_a_week=st.sampled_from([None, 0.01]),
)
rules = st.builds(
    Settings,
    bound_s=st.sampled_from([None, 10.0]),
    ageing_s=st.sampled_from([None, 6.0]),
    quantum_s=st.just(0.0),
    fair_share=st.booleans(),
    high=st.builds(Quota, leases=st.sampled_from([None, 1])),
    quota=quotas,
    group_quotas=st.fixed_dictionaries({"vision": quotas}),
)
owners = st.sampled_from([ALICE, BOB])
groups = st.sampled_from(["", "vision"])
picks = st.integers(0, 1000)


class AnyRequests(RuleBasedStateMachine):
    """Users ask for anything; the model judges each decision and, at the end, that all is over."""

    @initialize(policy=st.sampled_from(sorted(POLICIES)), rules=rules)
    def open(self, policy: str, rules: Settings) -> None:
        self.policy, self.rules = POLICIES[policy](), rules
        self.lab = Lab(gpus=GPUS, cores=CORES, policy=self.policy, settings=rules)
        self.submitted: dict[str, JobSubmitted] = {}
        self.held: dict[str, bool] = {}
        self.due_at: dict[str, float] = {}
        self.tries: dict[str, int] = {}
        self.ended: dict[str, Outcome] = {}
        self.cancelled: dict[str, None] = {}
        self.leased: dict[str, Grant] = {}

    @rule(
        owner=owners,
        group=groups,
        wish=wishes,
        after=st.lists(st.tuples(picks, st.sampled_from(After)), max_size=2),
    )
    def submit(
        self, owner: Any, group: str, wish: dict[str, Any], after: list[tuple[int, After]]
    ) -> None:
        job = f"j{len(self.submitted)}"
        names = list(self.submitted)
        before = {names[pick % len(names)]: how for pick, how in after if names}
        dependencies = tuple(Dependency(JobId(name), how) for name, how in before.items())
        event = JobSubmitted(
            at=self.lab.at,
            job=JobId(job),
            owner=owner,
            request=Request(**wish, after=dependencies),
            name="",
            notebook=None,
            group=group,
        )
        self.submitted[job] = event
        self.held[job] = event.request.is_held
        self.due_at[job] = self.lab.at + (event.request.start_after_s or 0.0)
        self.tries[job] = 0
        self.judge(self.lab.send(event))

    @precondition(lambda self: self.submitted)
    @rule(pick=picks)
    def hold(self, pick: int) -> None:
        job = self.pick(self.submitted, pick)
        if self.lab.job(job).state is JobState.QUEUED:
            self.held[job] = True
            self.judge(self.lab.send(HoldRequested(at=self.lab.at, job=JobId(job))))

    @precondition(lambda self: self.submitted)
    @rule(pick=picks)
    def release(self, pick: int) -> None:
        job = self.pick(self.submitted, pick)
        self.held[job] = False
        self.judge(self.lab.send(ReleaseRequested(at=self.lab.at, job=JobId(job))))

    @precondition(lambda self: self.submitted)
    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        job = self.pick(self.submitted, pick)
        self.cancelled.setdefault(job)
        self.judge(self.lab.cancel(job))

    @precondition(lambda self: self.leased)
    @rule(pick=picks, outcome=st.sampled_from([Outcome.DONE, Outcome.FAILED, Outcome.KILLED]))
    def end(self, pick: int, outcome: Outcome) -> None:
        job = self.pick(self.leased, pick)
        self.over(job, outcome)
        self.judge(self.lab.end(job, outcome))

    @rule(seconds=st.sampled_from([1.0, 4.0, 60.0]))
    def wait(self, seconds: float) -> None:
        for job in self.leased:
            self.judge(self.lab.start(job))
        self.judge(self.lab.tick(self.lab.at + seconds))

    @rule()
    def reboot(self) -> None:
        for job in list(self.leased):
            self.over(job, Outcome.LOST)
        self.judge(self.lab.reboot())
        for owner in (ALICE, BOB):
            self.judge(self.lab.connect(owner))

    def pick(self, among: dict[str, Any], pick: int) -> str:
        return list(among)[pick % len(among)]

    def over(self, job: str, outcome: Outcome) -> None:
        """A lease is over: the job has ended, is tried again, or waits again."""
        del self.leased[job]
        state, request = self.lab.job(job).state, self.submitted[job].request
        if state is JobState.STOPPING:
            self.ended[job] = Outcome.DONE if outcome is Outcome.DONE else Outcome.CANCELLED
        elif state is JobState.PREEMPTING and outcome not in {Outcome.DONE, Outcome.FAILED}:
            pass
        elif state is not JobState.PREEMPTING and (
            outcome in RETRIED and self.tries[job] < request.retries
        ):
            self.due_at[job] = self.lab.at + 3.0 * 2 ** self.tries[job]
            self.tries[job] += 1
        else:
            self.ended[job] = outcome

    def judge(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Grant):
                self.judge_grant(decision)
            elif isinstance(decision, End):
                self.judge_end(decision)
            elif isinstance(decision, Stop):
                assert decision.job in self.cancelled
            else:
                assert isinstance(decision, Preempt)
                assert not self.why_not(decision.winner)

    def why_not(self, job: str) -> str:
        """Why a job may not start, whatever is free."""
        if self.held[job]:
            return "it is held"
        if self.due_at[job] > self.lab.state.at:
            return "it is not due"
        if any(before.job not in self.ended for before in self.submitted[job].request.after):
            return "what comes before it has not ended"
        return "what comes before it ended otherwise" if self.can_never_start(job) else ""

    def can_never_start(self, job: str) -> bool:
        return any(
            (outcome is Outcome.DONE) != (before.after is After.OK)
            for before in self.submitted[job].request.after
            if (outcome := self.ended.get(before.job)) and before.after is not After.ANY
        )

    def judge_grant(self, grant: Grant) -> None:
        event = self.submitted[grant.job]
        assert not self.why_not(grant.job)
        assert any(
            (len(grant.units.gpus), grant.units.cores) == (shape.gpus, shape.cores)
            for shape in shapes_of(event.request)
        )
        gpus, rules = len(grant.units.gpus), self.rules
        self.leased[grant.job] = grant
        mine = [one for job, one in self.leased.items() if self.submitted[job].owner == event.owner]
        self.judge_quota(rules.quota, mine, gpus)
        if event.group:
            ours = [one for job, one in self.leased.items() if self.submitted[job].group]
            self.judge_quota(rules.group_quotas[event.group], ours, gpus)
        array = event.request.array
        if array is not None:
            same_array = [one for one in mine if self.submitted[one.job].request.array == array]
            assert len(same_array) <= (array.at_once or 0)
        is_high = event.request.priority is HIGH
        assert is_high or grant.counts_as is None
        if is_high and rules.high.leases is not None:
            high = [one for one in mine if self.submitted[one.job].request.priority is HIGH]
            within = [one for one in high if one.counts_as is None]
            assert len(within) <= rules.high.leases
            assert grant.counts_as is None or len(within) == rules.high.leases

    def judge_quota(self, quota: Quota, leased: list[Grant], gpus: int) -> None:
        assert quota.leases is None or len(leased) <= quota.leases
        held = sum(len(one.units.gpus) for one in leased)
        assert not gpus or quota.gpus is None or held <= quota.gpus

    def judge_end(self, end: End) -> None:
        assert end.outcome is Outcome.CANCELLED
        assert end.job in self.cancelled or self.can_never_start(end.job)
        self.ended[end.job] = Outcome.CANCELLED

    @invariant()
    def the_state_knows_the_same_jobs_as_the_model(self) -> None:
        if hasattr(self, "lab"):
            assert list(self.lab.state.leases.values()) == list(self.leased)
            live = {job for job in self.submitted if job not in self.ended}
            assert live == set(self.lab.state.jobs)

    def teardown(self) -> None:
        if not hasattr(self, "lab"):
            return
        restored = Scheduler.restore(self.policy, self.lab.entries, settings=self.rules)
        assert same(restored.state, self.lab.state)
        tick = Tick(at=self.lab.at)  # As a driver sends after a restart.
        assert restored.handle(tick) == self.lab.scheduler.handle(tick) == []
        assert restored.next_wakeup() == self.lab.scheduler.next_wakeup()
        self.everybody_comes_to_an_end()

    def everybody_comes_to_an_end(self) -> None:
        """Once all is released and whatever runs is done in time, nobody waits for ever."""
        for job in self.submitted:
            self.held[job] = False
            self.judge(self.lab.send(ReleaseRequested(at=self.lab.at, job=JobId(job))))
        for _ in range(8 * len(self.submitted)):
            for job in list(self.leased):
                self.over(job, Outcome.DONE)
                self.judge(self.lab.end(job))
            wakeup = self.lab.scheduler.next_wakeup()
            if not self.lab.state.jobs:
                return
            self.judge(self.lab.tick(self.lab.at + 1.0 if wakeup is None else wakeup))
        assert not self.lab.state.jobs


TestAnyRequests = AnyRequests.TestCase
TestAnyRequests.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
