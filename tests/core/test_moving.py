"""Use moves a running job's standing: warned first, lowered, raised again, never to and fro."""

from itertools import pairwise
from typing import Any

import pytest

from tests.core.builders import BOB, HIGH, LOW, NORMAL, Lab, gpu, jobs_of
from workbench.core.apply import apply
from workbench.core.decisions import Lower, Preempt, Raise, Warn
from workbench.core.errors import IllegalEvent
from workbench.core.events import LeaseStarted, UseFell, UseRose
from workbench.core.explain import explain
from workbench.core.model import JobId, JobState, LeaseId, Outcome, Preemption
from workbench.core.scheduler import Scheduler
from workbench.core.settings import Settings

MAY = {"preemption": (Preemption.CHECKPOINT,)}


def lab_with(job: str = "idle", **request: Any) -> Lab:
    """One GPU and a job on it that may give way."""
    lab = Lab(gpus=1, settings=Settings(bound_s=None, ageing_s=None))
    lab.submit(job, **{"gpus": 1, "priority": HIGH, **MAY, **request})
    lab.start(job)
    return lab


def fall(lab: Lab, at: float, part: float = 0.02, job: str = "idle") -> list[Any]:
    return lab.send(UseFell(at=at, lease=lab.lease(job), part=part))


def rise(lab: Lab, at: float, part: float = 0.8, job: str = "idle") -> list[Any]:
    return lab.send(UseRose(at=at, lease=lab.lease(job), part=part))


def lowered(**request: Any) -> Lab:
    lab = lab_with(**request)
    fall(lab, 400.0)
    lab.tick(1000.0)
    return lab


def why(lab: Lab, job: str = "idle") -> str:
    return explain(lab.state, lab.scheduler.standings, JobId(job)).reason


def test_a_fall_is_warned_at_once_and_says_until_when() -> None:
    lab = lab_with()
    assert fall(lab, 400.0) == [
        Warn(
            id=1,
            at=400.0,
            lease=LeaseId("L0"),
            job=JobId("idle"),
            reason="its GPU use fell to 2 %",
            until=1000.0,
        )
    ]
    assert why(lab) == (
        "its GPU use is low since 400 s (2 %): it counts as class normal from 1000 s on unless "
        "that rises"
    )
    assert lab.scheduler.next_wakeup() == 1000.0


def test_a_job_that_stays_idle_is_lowered_by_one_class_after_the_grace() -> None:
    lab = lab_with()
    fall(lab, 400.0)
    assert lab.tick(999.0) == []
    [lower] = lab.tick(1000.0)
    assert isinstance(lower, Lower)
    assert lower.reason == "its GPU use fell to 2 % and stayed low for 10 minutes"
    assert why(lab) == f"counts as class normal since 1000 s: {lower.reason}"
    assert lab.scheduler.next_wakeup() is None


@pytest.mark.parametrize(
    ("own", "other"), [(HIGH, HIGH), (NORMAL, NORMAL), (LOW, LOW)], ids=["high", "normal", "low"]
)
def test_a_lowered_job_gives_way_to_its_own_class(own: str, other: str) -> None:
    lab = lowered(priority=own)
    [preempt] = lab.submit("next", BOB, gpus=1, priority=other)
    assert isinstance(preempt, Preempt)
    assert preempt.job == "idle"
    assert preempt.reason == (
        "job next needs its units, and its GPU use fell to 2 % and stayed low for 10 minutes; "
        "it keeps its place by class, fair share and order"
    )
    busy = lab_with(priority=own)
    busy.tick(1000.0)
    assert busy.submit("next", BOB, gpus=1, priority=other) == []


def test_a_job_that_is_lowered_while_others_wait_gives_way_at_once() -> None:
    lab = lab_with()
    fall(lab, 400.0)
    lab.submit("next", BOB, gpus=1, priority=HIGH)
    assert [type(one) for one in lab.tick(1000.0)] == [Lower, Preempt]


def test_a_lowered_job_stands_worst_of_its_class_but_no_lower_than_the_next() -> None:
    lab = Lab(gpus=3, settings=Settings(bound_s=None, ageing_s=None))
    for job, priority in (("idle", NORMAL), ("busy", NORMAL), ("low", LOW)):
        lab.submit(job, gpus=1, priority=priority, **MAY)
        lab.start(job)
    fall(lab, 400.0)
    lab.tick(1000.0)
    order = [(level, job) for level, _, job in lab.worst_first()]
    assert order == [(2, "low"), (2, "idle"), (1, "busy")]


def test_a_job_that_gives_way_to_nobody_is_lowered_and_goes_on() -> None:
    lab = lowered(preemption=())
    assert why(lab).startswith("counts as class normal")
    assert lab.submit("next", BOB, gpus=1, priority=HIGH) == []


def test_a_low_job_counts_below_all_classes() -> None:
    assert why(lowered(priority=LOW)).startswith("counts below class low since 1000 s")


def test_a_rise_takes_the_warning_back() -> None:
    lab = lab_with()
    fall(lab, 400.0)
    assert rise(lab, 999.0) == []
    assert lab.tick(5000.0) == []
    assert why(lab) == "class high: it is its turn"


def test_a_lowered_job_is_raised_only_after_it_was_used_for_a_while() -> None:
    lab = lowered()
    rise(lab, 1100.0)
    assert lab.tick(1399.0) == []
    [up] = lab.tick(1400.0)
    assert isinstance(up, Raise)
    assert up.reason == "its GPU use rose to 80 % and was not low for 5 minutes"
    assert why(lab) == "class high: it is its turn"
    assert lab.submit("next", BOB, gpus=1, priority=HIGH) == []


def test_a_lowered_job_that_falls_again_meanwhile_stays_lowered() -> None:
    lab = lowered()
    rise(lab, 1100.0)
    assert fall(lab, 1200.0) == []
    assert lab.tick(5000.0) == []
    assert why(lab).startswith("counts as class normal")


def test_use_that_goes_to_and_fro_is_warned_once_in_the_grace() -> None:
    lab = lab_with()
    told: list[Any] = []
    for at in range(400, 4000, 120):
        told += fall(lab, float(at))
        told += rise(lab, at + 60.0)
    assert {type(one) for one in told} == {Warn}
    times = [one.at for one in told]
    assert len(times) > 2
    assert all(late - early >= 600.0 for early, late in pairwise(times))


def test_a_second_fall_is_warned_when_the_grace_is_over_and_lowered_a_grace_later() -> None:
    lab = lab_with()
    fall(lab, 400.0)
    rise(lab, 500.0)
    assert fall(lab, 600.0) == []
    assert lab.scheduler.next_wakeup() == 1000.0
    assert [type(one) for one in lab.tick(1000.0)] == [Warn]
    assert lab.tick(1599.0) == []
    assert [type(one) for one in lab.tick(1600.0)] == [Lower]


def test_a_lab_may_warn_nobody() -> None:
    lab = Lab(gpus=1, settings=Settings(idle_grace_s=None))
    lab.submit("idle", gpus=1)
    lab.start("idle")
    assert fall(lab, 400.0) == []
    assert lab.tick(5000.0) == []


def test_a_rise_without_a_fall_and_what_is_told_twice_change_nothing() -> None:
    lab = lab_with()
    assert rise(lab, 400.0) == []
    assert lab.job("idle").use is None
    fall(lab, 500.0)
    assert fall(lab, 600.0) == []
    assert [type(one) for one in lab.tick(1100.0)] == [Lower]


def test_use_of_a_lease_that_is_over_or_has_not_begun_changes_nothing() -> None:
    lab = lab_with()
    lease = lab.lease("idle")
    lab.end("idle")
    lab.submit("starts", gpus=1)
    for event in (UseFell, UseRose):
        assert lab.send(event(at=1.0, lease=lease, part=0.0)) == []
        assert lab.send(event(at=1.0, lease=lab.lease("starts"), part=0.0)) == []
    assert lab.job("starts").use is None


@pytest.mark.parametrize("part", [-0.1, 1.1, float("nan")])
def test_a_part_that_is_none_is_refused(part: float) -> None:
    lab = lab_with()
    with pytest.raises(IllegalEvent, match="a part is from 0 to 1"):
        fall(lab, 1.0, part)


def test_a_decision_that_does_not_follow_from_what_was_told_is_refused() -> None:
    lab = lab_with()

    def refused(kind: type[Warn | Lower | Raise], rule: str, **fields: Any) -> None:
        state, lease = lab.state, lab.lease("idle")
        common = {"id": state.next_decision, "at": state.at, "lease": lease, "reason": ""}
        with pytest.raises(IllegalEvent, match=rule):
            apply(state, kind(**{**common, "job": JobId("idle"), **fields}))

    refused(Lower, "nothing was told of the job's use")
    refused(Raise, "does not hold this lease", lease=LeaseId("L7"))
    fall(lab, 400.0)
    refused(Lower, "not warned for long enough")
    refused(Warn, "is warned or lowered already", until=1000.0)
    refused(Raise, "is not lowered")
    rise(lab, 500.0)
    refused(Lower, "use is not low")


def test_use_of_a_lease_that_never_was_is_refused() -> None:
    with pytest.raises(IllegalEvent, match="there never was such a lease"):
        lab_with().send(UseFell(at=1.0, lease=LeaseId("L9"), part=0.0))


@pytest.mark.parametrize("own", [HIGH, LOW])
def test_a_lowered_job_that_gave_way_comes_after_who_it_gave_way_to_and_starts_anew(
    own: str,
) -> None:
    lab = lowered(priority=own)
    lab.submit("next", BOB, gpus=1, priority=own)
    assert jobs_of(lab.end("idle", Outcome.KILLED)) == ["next"]
    assert lab.job("idle").state is JobState.QUEUED
    assert "; it counts " in why(lab)
    lab.start("next")
    assert jobs_of(lab.end("next")) == ["idle"]
    lab.start("idle")
    assert lab.job("idle").use is None
    assert [type(one) for one in fall(lab, 1001.0)] == [Warn]


def test_ageing_lifts_a_lowered_job_that_gave_way_back_to_its_class() -> None:
    lab = Lab(gpus=1, settings=Settings(bound_s=None, ageing_s=100.0))
    lab.submit("idle", gpus=1, priority=HIGH, **MAY)
    lab.start("idle")
    fall(lab, 400.0)
    lab.tick(1000.0)
    lab.submit("next", BOB, gpus=1, priority=HIGH)
    lab.end("idle", Outcome.KILLED)
    lab.start("next")
    lab.submit("later", BOB, gpus=1, priority=HIGH)
    assert lab.scheduler.next_wakeup() == 1100.0
    lab.tick(1100.0)
    assert jobs_of(lab.end("next")) == ["idle"]


def test_a_job_that_is_cancelled_as_it_is_due_is_only_stopped() -> None:
    lab = lab_with()
    fall(lab, 400.0)
    lab.at = 1000.0
    assert len(lab.cancel("idle")) == 1
    late = lab_with(time_limit_s=1000.0)
    fall(late, 400.0)
    assert jobs_of(late.tick(1000.0)) == ["idle"]


def test_a_restored_lab_lowers_when_the_warning_said_whatever_its_rules_are_now() -> None:
    lab = lab_with()
    fall(lab, 400.0)
    restored = Scheduler.restore(lab.policy, lab.entries, settings=Settings(idle_grace_s=60.0))
    assert restored.next_wakeup() == 1000.0


def test_a_job_on_cores_alone_is_told_of_its_use() -> None:
    lab = Lab()
    lab.submit("idle")
    lab.start("idle")
    [warn] = fall(lab, 400.0)
    assert warn.reason == "its use fell to 2 %"


def test_the_grace_may_be_nothing() -> None:
    lab = Lab(gpus=1, settings=Settings(idle_grace_s=0.0, idle_back_s=0.0))
    lab.submit("idle", gpus=1)
    lab.send(LeaseStarted(at=0.0, lease=lab.lease("idle")))
    assert [type(one) for one in fall(lab, 400.0)] == [Warn, Lower]
    assert [type(one) for one in rise(lab, 500.0)] == [Raise]
    assert lab.gpus_of("idle") == [gpu(0)]
