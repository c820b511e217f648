"""Who gives way to whom, and what becomes of both."""

from typing import Any

import pytest

from tests.core.builders import BOB, GIB, HIGH, LOW, Lab, gpu, jobs_of, seen
from workbench.core.decisions import Grant, Preempt
from workbench.core.model import JobState, Outcome, Preemption
from workbench.core.settings import Settings
from workbench.policies.fifo import Easy, FifoStrict

MAY = {"preemption": (Preemption.CHECKPOINT,)}


def lab_with(**running: dict[str, Any]) -> Lab:
    """Four GPUs, and jobs that have run for 100 s."""
    lab = Lab(gpus=4, settings=Settings(bound_s=None, ageing_s=None))
    for job, request in running.items():
        lab.submit(job, **request)
        lab.start(job)
    lab.tick(100.0)
    return lab


def test_a_higher_class_takes_the_units_of_a_lower_one() -> None:
    lab = lab_with(victim={"gpus": 4, "priority": LOW, **MAY})
    [preempt] = lab.submit("urgent", gpus=2, priority=HIGH)
    assert isinstance(preempt, Preempt)
    assert (preempt.job, preempt.winner, preempt.step) == ("victim", "urgent", "checkpoint")
    assert "urgent" in preempt.reason
    assert lab.job("victim").state is JobState.PREEMPTING
    [granted] = lab.end("victim", Outcome.KILLED)
    assert isinstance(granted, Grant)
    assert granted.job == "urgent"
    victim = lab.job("victim")
    assert (victim.state, victim.served_s, victim.preemptions) == (JobState.QUEUED, 100.0, 1)


@pytest.mark.parametrize(
    "request_",
    [{"gpus": 4}, {"gpus": 4, "priority": HIGH, **MAY}],
    ids=["gives way to nobody", "is of the same class"],
)
def test_some_jobs_never_give_way(request_: dict[str, Any]) -> None:
    lab = lab_with(running=request_)
    assert lab.submit("urgent", gpus=1, priority=HIGH) == []


def test_a_job_is_left_its_quantum() -> None:
    lab = Lab(gpus=1, settings=Settings(quantum_s=60.0))
    lab.submit("victim", gpus=1, **MAY)
    lab.start("victim")
    assert lab.submit("urgent", gpus=1, priority=HIGH) == []
    assert lab.scheduler.next_wakeup() == 60.0
    assert jobs_of(lab.tick(60.0)) == ["victim"]


def test_nobody_is_stopped_who_need_not_be() -> None:
    lab = lab_with(
        one={"gpus": 1, **MAY}, two={"gpus": 2, "priority": LOW, **MAY}, last={"gpus": 1, **MAY}
    )
    assert jobs_of(lab.submit("urgent", gpus=2, priority=HIGH)) == ["two"]


def test_nobody_is_stopped_for_nothing() -> None:
    lab = lab_with(small={"gpus": 1, "priority": LOW, **MAY}, stays={"gpus": 3})
    assert lab.submit("urgent", gpus=2, priority=HIGH) == []


def test_what_comes_free_goes_to_the_one_for_whom_it_was_taken() -> None:
    lab = lab_with(victim={"gpus": 2, **MAY}, stays={"gpus": 2})
    lab.submit("urgent", gpus=2, priority=HIGH)
    assert lab.submit("other", BOB, gpus=1) == []
    assert jobs_of(lab.end("victim", Outcome.KILLED)) == ["urgent"]


def test_free_units_are_kept_while_others_are_still_given_back() -> None:
    lab = lab_with(victim={"gpus": 2, **MAY}, stays={"gpus": 1})
    lab.submit("urgent", gpus=3, priority=HIGH)
    assert lab.submit("other", BOB, gpus=1) == []
    lab.end("victim", Outcome.KILLED)
    assert sorted(lab.gpus_of("urgent")) == [gpu(0), gpu(1), gpu(3)]


def test_a_job_that_was_done_before_it_was_stopped_is_done() -> None:
    lab = lab_with(victim={"gpus": 4, **MAY})
    lab.submit("urgent", gpus=4, priority=HIGH)
    assert jobs_of(lab.end("victim", Outcome.DONE)) == ["urgent"]
    assert lab.job("victim").outcome is Outcome.DONE


def test_a_victim_may_be_cancelled_meanwhile() -> None:
    lab = lab_with(victim={"gpus": 4, **MAY})
    lab.submit("urgent", gpus=4, priority=HIGH)
    assert jobs_of(lab.cancel("victim")) == ["victim"]
    assert lab.job("victim").state is JobState.STOPPING
    assert jobs_of(lab.end("victim", Outcome.KILLED)) == ["urgent"]
    assert lab.job("victim").outcome is Outcome.CANCELLED


def test_a_winner_that_leaves_leaves_the_units_to_others() -> None:
    lab = lab_with(victim={"gpus": 4, **MAY})
    lab.submit("urgent", gpus=4, priority=HIGH)
    lab.cancel("urgent")
    lab.submit("next", BOB, gpus=4)
    assert jobs_of(lab.end("victim", Outcome.KILLED)) == ["victim"]


def test_an_unconfirmed_preemption_is_sent_again() -> None:
    lab = lab_with(victim={"gpus": 4, **MAY})
    decisions = lab.submit("urgent", gpus=4, priority=HIGH)
    assert lab.scheduler.unconfirmed() == decisions


def test_a_host_that_restarts_queues_what_was_giving_way() -> None:
    lab = lab_with(victim={"gpus": 4, **MAY})
    lab.submit("urgent", gpus=4, priority=HIGH)
    lab.reboot()
    assert lab.job("victim").state is JobState.QUEUED


def test_an_overdue_gang_gets_units_kept_as_they_come_free() -> None:
    lab = Lab(gpus=4, settings=Settings(bound_s=1000.0, ageing_s=None))
    for number in range(4):
        lab.submit(f"small{number}", gpus=1)
        lab.start(f"small{number}")
    lab.submit("gang", gpus=4)
    for number in range(3):
        lab.submit(f"more{number}", BOB, gpus=1)
    assert jobs_of(lab.end("small0")) == ["more0"]
    lab.start("more0")
    lab.tick(1000.0)
    assert lab.end("small1") == []
    assert lab.end("small2") == []
    assert lab.end("small3") == []
    assert jobs_of(lab.end("more0")) == ["gang"]


def test_overdue_jobs_get_no_more_than_their_part_of_the_lab() -> None:
    lab = Lab(gpus=4, settings=Settings(bound_s=1000.0, ageing_s=None))
    lab.submit("victim", gpus=4, **MAY)
    lab.start("victim")
    lab.submit("a", BOB, gpus=1, **MAY)
    lab.submit("b", BOB, gpus=1, **MAY)
    assert lab.tick(1000.0) == []  # fifo preempts nobody
    assert jobs_of(lab.end("victim")) == ["a", "b"]
    assert [lab.job(job).is_settled for job in ("a", "b")] == [True, False]


def test_under_a_strict_policy_nothing_of_a_lower_class_takes_what_a_winner_waits_for() -> None:
    lab = Lab(cores=4, policy=FifoStrict(), settings=Settings(quantum_s=0.0))
    lab.submit("short", cores=1)
    lab.submit("victim", cores=3, priority=LOW, preemption=(Preemption.REQUEUE,))
    lab.start("victim")
    lab.tick(1.0)
    lab.submit("winner", BOB, cores=4, priority=HIGH)
    lab.submit("later", BOB, cores=1)
    assert jobs_of(lab.end("short")) == ["victim"]
    assert jobs_of(lab.end("victim", Outcome.KILLED)) == ["winner"]


def test_a_job_that_is_cancelled_while_it_gives_way_still_gives_its_units_to_the_winner() -> None:
    lab = Lab(gpus=2)
    for job in ("first", "second"):
        lab.submit(job, gpus=1, priority=LOW, preemption=(Preemption.REQUEUE,))
        lab.start(job)
    lab.tick(100.0)
    (preempt,) = lab.submit("winner", BOB, gpus=1, priority=HIGH)
    assert jobs_of(lab.cancel(preempt.job)) == [preempt.job]
    assert [type(one).__name__ for one in lab.scheduler.unconfirmed()] == ["Stop"]
    assert jobs_of(lab.end(preempt.job, Outcome.KILLED)) == ["winner"]
    assert lab.job(preempt.job).outcome is Outcome.CANCELLED


def test_units_of_a_job_that_is_being_cancelled_count_as_coming_free_at_once() -> None:
    lab = Lab(gpus=4, policy=Easy())
    lab.submit("narrow", gpus=1)
    lab.submit("wide", gpus=2)
    lab.submit("waits", gpus=2)
    assert lab.submit("small", gpus=1) == []
    assert jobs_of(lab.cancel("wide")) == ["wide", "small"]


def test_who_is_no_help_to_the_winner_is_spared() -> None:
    lab = Lab()
    lab.send(seen(0, 0, memory_gib=40))
    lab.send(seen(0, 1, memory_gib=80))
    lab.submit(
        "large", gpus=1, gpu_memory_bytes=60 * GIB, priority=LOW, preemption=(Preemption.REQUEUE,)
    )
    lab.submit("small", gpus=1, priority=LOW, preemption=(Preemption.REQUEUE,))
    for job in ("large", "small"):
        lab.start(job)
    lab.tick(100.0)
    assert [job for _, _, job in lab.worst_first()] == ["small", "large"]
    winner = lab.submit("winner", BOB, gpus=1, gpu_memory_bytes=60 * GIB, priority=HIGH)
    assert jobs_of(winner) == ["large"]
