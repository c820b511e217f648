"""Jobs that wait for something other than units: a release, a time, other jobs, another try."""

from typing import Any

import pytest

from tests.core.builders import ALICE, BOB, Lab, jobs_of
from workbench.core.decisions import End, Grant
from workbench.core.errors import NeverFits, UserError
from workbench.core.events import HoldRequested, ReleaseRequested
from workbench.core.explain import explain
from workbench.core.job import waited_s
from workbench.core.model import After, Dependency, JobId, JobState, Outcome
from workbench.core.settings import Settings


def hold(lab: Lab, job: str) -> list[Any]:
    return lab.send(HoldRequested(at=lab.at, job=JobId(job)))


def release(lab: Lab, job: str) -> list[Any]:
    return lab.send(ReleaseRequested(at=lab.at, job=JobId(job)))


def after(job: str, how: After = After.OK) -> Dependency:
    return Dependency(JobId(job), how)


def reason_of(lab: Lab, job: str) -> str:
    return explain(lab.state, lab.scheduler.standings, JobId(job)).reason


def test_a_held_job_waits_until_it_is_released() -> None:
    lab = Lab(gpus=1)
    assert lab.submit("a", gpus=1, is_held=True) == []
    assert reason_of(lab, "a") == "it is held until its owner releases it"
    assert jobs_of(lab.submit("b", gpus=1)) == ["b"]
    lab.end("b")
    assert jobs_of(release(lab, "a")) == ["a"]


def test_a_waiting_job_can_be_held_and_a_leased_one_cannot() -> None:
    lab = Lab(cores=2)
    lab.submit("a", cores=2)
    lab.submit("b", cores=2)
    hold(lab, "b")
    assert lab.end("a") == []
    assert jobs_of(release(lab, "b")) == ["b"]
    with pytest.raises(UserError, match="job b is starting: only a waiting job can be held"):
        hold(lab, "b")
    with pytest.raises(UserError, match="no job x is known"):
        hold(lab, "x")


def test_time_on_hold_is_not_waiting() -> None:
    lab = Lab(cores=1, settings=Settings(bound_s=100.0, ageing_s=None))
    lab.submit("long", cores=1)
    lab.submit("a", cores=1)
    lab.tick(30)
    hold(lab, "a")
    lab.tick(500)
    assert not lab.scheduler.standings.overdue
    release(lab, "a")
    assert waited_s(lab.job("a"), 500) == 30
    lab.tick(569)
    assert not lab.scheduler.standings.overdue
    lab.tick(570)
    assert lab.scheduler.standings.overdue


def test_releasing_twice_changes_nothing() -> None:
    lab = Lab()
    lab.submit("a", is_held=True)
    release(lab, "a")
    assert release(lab, "a") == []
    assert lab.job("a").state is JobState.STARTING


def test_a_job_starts_no_sooner_than_asked_for() -> None:
    lab = Lab()
    assert lab.submit("a", start_after_s=60.0) == []
    assert lab.scheduler.next_wakeup() == 60.0
    assert reason_of(lab, "a") == "it starts in 1 min at the soonest, as asked for"
    assert lab.tick(59) == []
    assert jobs_of(lab.tick(60)) == ["a"]
    assert waited_s(lab.job("a"), 60) == 0


def test_a_wait_limit_counts_from_when_the_job_may_start() -> None:
    lab = Lab(cores=1)
    lab.submit("long")
    lab.submit("a", start_after_s=60.0, wait_limit_s=10.0)
    lab.submit("b", is_held=True, wait_limit_s=10.0)
    assert lab.tick(69) == []
    (end,) = lab.tick(70)
    assert (end.job, end.outcome) == ("a", Outcome.EXPIRED)
    release(lab, "b")
    assert jobs_of(lab.tick(80)) == ["b"]


@pytest.mark.parametrize(
    ("how", "outcome", "starts"),
    [
        (After.OK, Outcome.DONE, True),
        (After.OK, Outcome.FAILED, False),
        (After.OK, Outcome.CANCELLED, False),
        (After.ANY, Outcome.DONE, True),
        (After.ANY, Outcome.KILLED, True),
        (After.FAIL, Outcome.DONE, False),
        (After.FAIL, Outcome.FAILED, True),
    ],
)
def test_a_job_starts_after_another_ended_as_it_needs_or_ends_with_it(
    how: After, outcome: Outcome, *, starts: bool
) -> None:
    lab = Lab()
    lab.submit("first")
    lab.start("first")
    assert lab.submit("then", BOB, after=(after("first", how),)) == []
    if outcome is Outcome.CANCELLED:
        lab.cancel("first")
    (decision,) = lab.end("first", outcome)
    assert decision.job == "then"
    if starts:
        assert isinstance(decision, Grant)
        return
    assert isinstance(decision, End)
    assert decision.outcome is Outcome.CANCELLED
    assert "job first" in decision.reason
    assert str(outcome) in decision.reason


def test_what_waits_for_a_job_that_never_starts_ends_in_the_same_step() -> None:
    lab = Lab(cores=1)
    lab.submit("long")
    lab.submit("a")
    lab.submit("b", after=(after("a"),))
    lab.submit("c", after=(after("b"),))
    lab.submit("d", after=(after("c", After.ANY),))
    assert jobs_of(lab.cancel("a")) == ["a", "b", "c"]
    assert lab.job("c").outcome is Outcome.CANCELLED
    assert jobs_of(lab.end("long")) == ["d"]


def test_a_job_waits_for_all_that_it_names() -> None:
    lab = Lab()
    lab.submit("a")
    lab.submit("b")
    lab.submit("c", after=(after("a"), after("b")))
    assert "job a to be done; it waits for job b to be done" in reason_of(lab, "c")
    assert lab.end("a") == []
    assert jobs_of(lab.end("b")) == ["c"]


def test_a_job_may_name_jobs_that_have_ended() -> None:
    lab = Lab()
    lab.submit("a")
    lab.end("a", Outcome.FAILED)
    (end,) = lab.submit("b", after=(after("a"),))
    assert isinstance(end, End)
    assert "failed" in end.reason
    assert jobs_of(lab.submit("c", after=(after("a", After.ANY),))) == ["c"]


def test_a_cancelled_job_is_waited_for_no_more_and_waits_no_more() -> None:
    lab = Lab()
    lab.submit("a")
    lab.submit("b", after=(after("a"),))
    assert jobs_of(lab.cancel("b")) == ["b"]
    assert lab.end("a") == []
    assert not lab.state.dependents


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"after": (after("x"),)}, "after=x: no such job is known here"),
        ({"after": (after("a"), after("a", After.ANY))}, "after=a: this job is named twice"),
        ({"start_after_s": -1.0}, "start_after_s=-1.0 is not a finite time"),
        ({"start_after_s": float("inf")}, "start_after_s=inf is not a finite time"),
        ({"retries": -1}, "retries=-1 is less than 0"),
        ({"retries": 1, "retry_delay_s": 0.0}, "retry_delay_s=0.0 is not a finite time"),
    ],
)
def test_what_cannot_be_waited_for_is_refused(request_: dict[str, Any], message: str) -> None:
    lab = Lab()
    lab.submit("a")
    with pytest.raises(UserError, match=message):
        lab.submit("b", **request_)


def test_a_job_that_fails_starts_again_later_and_later() -> None:
    lab = Lab()
    lab.submit("a", retries=2, retry_delay_s=10.0)
    lab.start("a")
    lab.tick(5)
    assert lab.end("a", Outcome.FAILED, "exit code 1") == []
    assert lab.job("a").state is JobState.QUEUED
    assert "try 2 of 3; the last one failed: exit code 1" in reason_of(lab, "a")
    assert lab.tick(14) == []
    assert jobs_of(lab.tick(15)) == ["a"]
    lab.start("a")
    lab.end("a", Outcome.KILLED)
    assert lab.tick(34) == []
    assert jobs_of(lab.tick(35)) == ["a"]
    lab.start("a")
    lab.end("a", Outcome.FAILED)
    assert lab.job("a").outcome is Outcome.FAILED


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.CANCELLED, Outcome.TIMED_OUT])
def test_only_what_fails_starts_again(outcome: Outcome) -> None:
    lab = Lab()
    lab.submit("a", retries=2, time_limit_s=10.0)
    lab.start("a")
    if outcome is Outcome.CANCELLED:
        lab.cancel("a")
    if outcome is Outcome.TIMED_OUT:
        lab.tick(10)
    lab.end("a", Outcome.DONE if outcome is Outcome.DONE else Outcome.KILLED)
    assert lab.job("a").outcome is outcome


def test_what_the_host_lost_starts_again_where_it_asked_for_it() -> None:
    lab = Lab()
    lab.submit("a", retries=1, retry_delay_s=10.0)
    lab.submit("b")
    lab.submit("c", after=(after("b", After.FAIL),))
    lab.reboot()
    assert lab.job("a").state is JobState.QUEUED
    assert lab.job("b").outcome is Outcome.LOST
    assert jobs_of(lab.connect(ALICE)) == ["c"]
    assert jobs_of(lab.tick(10)) == ["a"]


def test_a_job_that_waits_for_another_goes_on_waiting_while_that_is_tried_again() -> None:
    lab = Lab()
    lab.submit("a", retries=1, retry_delay_s=1.0)
    lab.submit("b", after=(after("a"),))
    assert lab.end("a", Outcome.FAILED) == []
    assert jobs_of(lab.tick(1)) == ["a"]
    assert jobs_of(lab.end("a")) == ["b"]


def test_a_refused_job_is_not_waited_for() -> None:
    lab = Lab(gpus=1)
    with pytest.raises(NeverFits):
        lab.submit("a", gpus=2, is_held=True)
    assert lab.state.find(JobId("a")) is None
