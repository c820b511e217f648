"""What must hold of warnings and of who is lowered, on any history of any lab."""

from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from tests.core.builders import ALICE, BOB
from tests.core.test_properties import AnyLab, picks, rules
from workbench.core.decisions import Decision, Grant, Lower, Preempt, Raise, Stop, Warn
from workbench.core.events import ProgressMade, UseFell, UseRose
from workbench.core.history import RESTART_S
from workbench.core.model import LeaseId, Outcome, Preemption, PriorityClass
from workbench.core.settings import Settings
from workbench.core.state import expected_end

MAY = (Preemption.CHECKPOINT,)
spans = st.sampled_from([0.0, 1.0, 3.0, 9.0])


class AnyMovingLab(AnyLab):
    """Use and progress are told of what runs; of all that is told, the model keeps its own book."""

    def __init__(self) -> None:
        super().__init__()
        self.lease_of: dict[str, LeaseId] = {}
        self.stopping: dict[str, None] = {}
        self.low: dict[LeaseId, float] = {}
        self.rose: dict[LeaseId, float] = {}
        self.warned: dict[LeaseId, Warn] = {}
        self.warned_at: dict[LeaseId, float] = {}
        self.lowered: dict[str, None] = {}
        self.parts: dict[LeaseId, float] = {}

    # --- what happens ----------------------------------------------------------------------

    @precondition(lambda self: self.leased)
    @rule(pick=picks, changes=st.lists(st.tuples(st.booleans(), spans), max_size=8))
    def use(self, pick: int, changes: list[tuple[bool, float]]) -> None:
        """Falls, rises and waits in one: Hypothesis seldom picks many of them in a row."""
        job = self.pick(self.leased, pick)
        if job not in self.started:
            self.started[job] = self.lab.at
            self.judge(self.lab.start(job))
        for is_low, seconds in changes:
            if job in self.leased:
                self.tell_use(job, is_low=is_low)
                self.wait(seconds)

    def tell_use(self, job: str, *, is_low: bool) -> None:
        lease, at = self.lease_of[job], self.lab.at
        if self.runs(job):
            if is_low:
                self.low.setdefault(lease, at)
                self.rose.pop(lease, None)
            else:
                if self.low.pop(lease, None) is not None:
                    self.rose[lease] = at
                self.warned.pop(lease, None)
        kind = UseFell if is_low else UseRose
        self.judge(self.lab.send(kind(at=at, lease=lease, part=0.01 if is_low else 0.9)))

    @precondition(lambda self: self.low)
    @rule(seconds=spans)
    def stay(self, seconds: float) -> None:
        self.wait(seconds)

    @precondition(lambda self: self.leased)
    @rule(pick=picks, part=st.sampled_from([0.0, 0.02, 0.3, 0.9, 1.0]))
    def progress(self, pick: int, part: float) -> None:
        job = self.pick(self.leased, pick)
        lease = self.lease_of[job]
        part = max(part, self.parts.get(lease, 0.0))
        if self.runs(job):
            self.parts[lease] = part
        self.judge(self.lab.send(ProgressMade(at=self.lab.at, lease=lease, part=part)))

    # --- what must hold --------------------------------------------------------------------

    def runs(self, job: str) -> bool:
        return job in self.started and job not in self.preempted and job not in self.stopping

    def rank(self, job: str) -> int:
        return super().rank(job) + (job in self.lowered)

    def judge(self, decisions: list[Decision]) -> None:
        others: list[Decision] = []
        for decision in decisions:
            if isinstance(decision, Warn):
                self.judge_warn(decision)
            elif isinstance(decision, Lower):
                self.judge_lower(decision)
            elif isinstance(decision, Raise):
                self.judge_raise(decision)
            else:
                others.append(decision)
            if isinstance(decision, Stop):
                self.stopping[decision.job] = None
        super().judge(others)

    def judge_grant(self, grant: Grant) -> None:
        super().judge_grant(grant)
        self.lease_of[grant.job] = grant.lease
        self.lowered.pop(grant.job, None)

    def judge_preempt(self, preempt: Preempt) -> None:
        """None that is declared to be done, or stopped, before its restart would pay."""
        super().judge_preempt(preempt)
        _, victim = self.requests[preempt.job]
        if self.policy.asks_run_times and self.rank(preempt.job) <= self.rank(preempt.winner):
            return
        ran_s = self.served.get(preempt.job, 0.0) + preempt.at - self.started[preempt.job]
        for span_s in (victim.expected_s, victim.time_limit_s):
            assert span_s is None or not 0 < span_s - ran_s <= RESTART_S

    def judge_warn(self, warn: Warn) -> None:
        """At once when use is low, and not again within the grace."""
        grace_s = self.rules.idle_grace_s
        assert grace_s is not None
        assert self.runs(warn.job)
        assert warn.job not in self.lowered
        assert warn.lease in self.low
        assert warn.lease not in self.warned
        assert warn.until == warn.at + grace_s
        assert warn.at >= self.warned_at.get(warn.lease, -1e9) + grace_s
        self.warned[warn.lease] = warn
        self.warned_at[warn.lease] = warn.at

    def judge_lower(self, lower: Lower) -> None:
        """A warning came first, by the grace at least, and use has not risen since."""
        assert self.runs(lower.job)
        assert lower.job not in self.lowered
        warn = self.warned.pop(lower.lease)
        assert lower.at >= warn.at + (self.rules.idle_grace_s or 0.0)
        assert self.low[lower.lease] <= warn.at
        self.lowered[lower.job] = None

    def judge_raise(self, up: Raise) -> None:
        """Use rose that long ago, and has not fallen since."""
        assert self.runs(up.job)
        assert up.lease not in self.low
        assert up.at >= self.rose[up.lease] + self.rules.idle_back_s
        del self.lowered[up.job]

    @invariant()
    def a_lowered_job_stands_one_class_lower_and_no_other_does(self) -> None:
        if hasattr(self, "lab"):
            for level, _, job in self.lab.worst_first():
                assert level == self.rank(job)

    @invariant()
    def of_jobs_alike_none_that_is_further_stands_lower(self) -> None:
        if hasattr(self, "lab"):
            for worse, better in pairwise(self.lab.worst_first()):
                if worse[:2] == better[:2]:
                    parts = [self.part_of(one[2]) for one in (worse, better)]
                    assert parts == sorted(parts)

    def part_of(self, job: Any) -> float:
        progress = self.lab.job(job).progress
        return progress.part if progress else 0.0

    @invariant()
    def no_job_is_expected_to_outlive_its_time_limit(self) -> None:
        if hasattr(self, "lab"):
            for job in self.started:
                limit_s = self.requests[job][1].time_limit_s
                end = expected_end(self.lab.state, self.lab.job(job))
                assert end is None or end >= self.lab.state.at
                if limit_s is not None:
                    left_s = limit_s + self.started[job] - self.served.get(job, 0.0)
                    assert end is not None
                    assert end <= max(left_s, self.lab.state.at) + 1e-6


TestAnyMovingLab = AnyMovingLab.TestCase
TestAnyMovingLab.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@settings(max_examples=200, deadline=None)
@given(
    policy=st.sampled_from(["fifo", "patient", "srtf"]),
    rules=rules,
    priorities=st.lists(st.sampled_from(PriorityClass), min_size=6, max_size=6),
    told=st.lists(st.tuples(st.integers(0, 5), st.booleans(), spans), min_size=10, max_size=40),
)
def test_whatever_is_told_of_busy_jobs_the_rules_hold(
    policy: str,
    rules: Settings,
    priorities: list[PriorityClass],
    told: list[tuple[int, bool, float]],
) -> None:
    """The lab above seldom has many jobs that run for long; this one has nothing else."""
    lab = AnyMovingLab()
    kinds = [{"gpus": 1, "priority": one, "preemption": MAY} for one in priorities]
    first = [((ALICE, BOB)[number % 2], kind) for number, kind in enumerate(kinds)]
    lab.open(agents=(ALICE, BOB), policy=policy, rules=rules, first=first, is_running=True)
    for number, is_low, seconds in told:
        job = f"j{number}"
        if job in lab.started and job in lab.leased:
            lab.tell_use(job, is_low=is_low)
        lab.wait(seconds)
        lab.a_lowered_job_stands_one_class_lower_and_no_other_does()
        for victim in list(lab.preempted):
            lab.end(list(lab.leased).index(victim), Outcome.KILLED)
        lab.start_all_and_wait(0.0)
    lab.teardown()
