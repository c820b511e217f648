"""The milder steps: giving some units back, and standing still; and the way back from both."""

from typing import Any

import pytest

from tests.core.builders import BOB, GIB, HIGH, LOW, Lab, gpu, jobs_of, seen
from workbench.core.decisions import Decision, Grant, Grow, Preempt, Resume, Shrink, Suspend
from workbench.core.errors import IllegalEvent, NeverFits
from workbench.core.events import LeaseGrown, LeaseResumed, LeaseShrunk, LeaseSuspended
from workbench.core.explain import explain
from workbench.core.model import JobId, JobState, Outcome, Preemption, Request, Units
from workbench.core.placement import Pool, shape_of
from workbench.core.settings import Settings
from workbench.policies.fifo import Easy

SHRINK, SUSPEND, CHECKPOINT, REQUEUE = Preemption
ELASTIC: dict[str, Any] = {"priority": LOW, "gpus": 4, "min_gpus": 1, "preemption": (SHRINK,)}
STILL: dict[str, Any] = {"priority": LOW, "cores": 8, "preemption": (SUSPEND,)}


class Ladder(Lab):
    """Jobs that have run for 100 s on four GPUs and sixteen cores."""

    def __init__(self, *, rules: dict[str, Any] | None = None, **jobs: dict[str, Any]) -> None:
        rules = {"bound_s": None, "ageing_s": None, **(rules or {})}
        super().__init__(gpus=4, settings=Settings(**rules))
        for job, request in jobs.items():
            self.submit(job, **request)
            self.start(job)
        self.tick(100.0)

    def shrunk(self, job: str, *gpus: int) -> list[Decision]:
        given = tuple(gpu(number) for number in gpus)
        return self.send(LeaseShrunk(at=self.at, lease=self.lease(job), gpus=given))

    def grown(self, job: str) -> list[Decision]:
        return self.send(LeaseGrown(at=self.at, lease=self.lease(job)))

    def suspended(self, job: str) -> list[Decision]:
        return self.send(LeaseSuspended(at=self.at, lease=self.lease(job)))

    def resumed(self, job: str) -> list[Decision]:
        return self.send(LeaseResumed(at=self.at, lease=self.lease(job)))


def test_a_job_gives_back_only_what_is_missing_and_runs_on() -> None:
    lab = Ladder(victim=ELASTIC)
    [shrink] = lab.submit("urgent", BOB, gpus=2, priority=HIGH)
    assert isinstance(shrink, Shrink)
    assert (shrink.job, shrink.gpus, shrink.winner) == ("victim", (gpu(2), gpu(3)), "urgent")
    assert lab.job("victim").state is JobState.SHRINKING
    assert lab.scheduler.unconfirmed() == [shrink]
    [granted] = lab.shrunk("victim", 3, 2)
    assert isinstance(granted, Grant)
    assert lab.gpus_of("urgent") == [gpu(2), gpu(3)]
    assert (lab.job("victim").state, lab.gpus_of("victim")) == (JobState.RUNNING, [gpu(0), gpu(1)])
    assert lab.job("victim").preemptions == 0


def test_the_gpus_are_the_job_s_own_until_it_gives_them_back() -> None:
    lab = Ladder(victim=ELASTIC)
    lab.submit("urgent", BOB, gpus=2, priority=HIGH)
    assert lab.submit("other", BOB, gpus=1, priority=HIGH) == []
    assert lab.gpus_of("victim") == [gpu(0), gpu(1), gpu(2), gpu(3)]


def test_a_job_is_never_shrunk_below_what_it_can_go_on_with() -> None:
    lab = Ladder(victim={**ELASTIC, "min_gpus": 3})
    assert lab.submit("urgent", BOB, gpus=2, priority=HIGH) == []


def test_a_shrunk_job_grows_back_once_nobody_waits_for_gpus() -> None:
    lab = Ladder(victim=ELASTIC)
    lab.submit("urgent", BOB, gpus=2, priority=HIGH)
    lab.submit("gang", BOB, gpus=4, priority=LOW)
    lab.shrunk("victim", 2, 3)
    lab.start("urgent")
    assert lab.end("urgent") == []
    assert jobs_of(lab.cancel("gang")) == ["gang", "victim"]
    assert sorted(lab.gpus_of("victim")) == [gpu(0), gpu(1), gpu(2), gpu(3)]
    [grow] = lab.scheduler.unconfirmed()
    assert isinstance(grow, Grow)
    assert lab.grown("victim") == []
    assert lab.job("victim").ladder is None
    assert lab.scheduler.unconfirmed() == []


def test_gpus_that_a_job_got_back_are_nobody_else_s() -> None:
    lab = Ladder(victim={**ELASTIC, "gpus": 2})
    lab.submit("urgent", BOB, gpus=3, priority=HIGH)
    lab.shrunk("victim", 1)
    assert jobs_of(lab.end("urgent")) == ["victim"]
    lab.submit("late", BOB, gpus=2)
    assert (lab.gpus_of("victim"), lab.gpus_of("late")) == ([gpu(0), gpu(1)], [gpu(2), gpu(3)])


def test_a_job_grows_on_the_node_that_it_is_on() -> None:
    lab = Lab()
    for number, node in enumerate("aba"):
        lab.send(seen(0, number, node=node))
    pool = Pool.of(lab.state)
    pool.take(Units(gpus=(gpu(0), gpu(2))))
    on_one, on_two = (shape_of(Request(gpus=number)) for number in (2, 3))
    assert pool.beside((gpu(0),), on_one, 2) == ()
    assert pool.beside((gpu(0), gpu(2)), on_two, 3) == (gpu(1),)
    assert pool.beside((gpu(0), gpu(9)), on_two, 3) == ()


def test_what_confirms_a_step_twice_changes_nothing() -> None:
    lab = Ladder(victim=ELASTIC)
    lab.submit("urgent", BOB, gpus=2, priority=HIGH)
    with pytest.raises(IllegalEvent, match="was asked for"):
        lab.shrunk("victim", 0)
    lab.shrunk("victim", 2, 3)
    assert lab.shrunk("victim", 2, 3) == []
    assert lab.grown("victim") == lab.suspended("victim") == lab.resumed("victim") == []
    assert lab.job("victim").state is JobState.RUNNING


def test_fair_share_counts_what_is_left() -> None:
    lab = Ladder(victim=ELASTIC)
    owner = lab.job("victim").owner
    lab.submit("urgent", BOB, gpus=3, priority=HIGH)
    assert lab.state.usage[owner].rate == 4
    lab.shrunk("victim", 1, 2, 3)
    assert lab.state.usage[owner].rate == 1


def test_cores_come_free_when_a_job_without_gpus_stands_still() -> None:
    lab = Ladder(victim={**STILL, "memory_bytes": 8 * GIB}, stays={"cores": 8})
    [suspend] = lab.submit("urgent", BOB, cores=4, priority=HIGH)
    assert isinstance(suspend, Suspend)
    assert (suspend.job, suspend.winner) == ("victim", "urgent")
    assert jobs_of(lab.suspended("victim")) == ["urgent"]
    victim = lab.job("victim")
    assert (victim.state, victim.served_s, victim.started_at) == (JobState.SUSPENDED, 100.0, None)
    assert victim.queued_at == 100.0
    assert (lab.state.leased_cores, lab.state.leased_memory_bytes) == (12, 8 * GIB)
    assert explain(lab.state, lab.scheduler.standings, JobId("victim")).reason == (
        f"it is suspended: {suspend.reason}; it waits for 8 cores, 4 of 16 free"
    )


def test_a_suspended_job_goes_on_when_its_cores_are_free_and_keeps_its_time() -> None:
    lab = Ladder(victim={**STILL, "time_limit_s": 150.0}, stays={"cores": 8})
    lab.submit("urgent", BOB, cores=4, priority=HIGH)
    lab.suspended("victim")
    lab.start("urgent")
    assert lab.tick(10_000.0) == []
    [resume] = lab.end("urgent")
    assert isinstance(resume, Resume)
    assert (lab.job("victim").state, lab.state.leased_cores) == (JobState.RESUMING, 16)
    lab.resumed("victim")
    assert lab.job("victim").state is JobState.RUNNING
    assert lab.scheduler.next_wakeup() == 10_050.0
    assert jobs_of(lab.tick(10_050.0)) == ["victim"]


def test_a_suspended_job_passes_what_waits_for_what_it_keeps() -> None:
    """Else neither would ever start: what it keeps comes free only when it is done."""
    rules = Settings(bound_s=None, ageing_s=None)
    lab = Lab(policy=Easy(), settings=rules, memory_gib=8)
    lab.submit("victim", **{**STILL, "memory_bytes": 6 * GIB})
    lab.start("victim")
    lab.tick(100.0)
    lab.submit("urgent", BOB, cores=16, priority=HIGH)
    lab.send(LeaseSuspended(at=lab.at, lease=lab.lease("victim")))
    lab.submit("large", BOB, cores=16, memory_bytes=4 * GIB, priority=HIGH)
    assert jobs_of(lab.end("urgent")) == ["victim"]


def test_what_others_give_back_for_a_job_is_not_taken_by_a_suspended_one() -> None:
    lab = Ladder(
        still={**STILL, "cores": 4},
        other={"cores": 8, "preemption": (CHECKPOINT,)},
        stays={"cores": 4},
    )
    lab.submit("urgent", BOB, cores=4, priority=HIGH)
    lab.suspended("still")
    assert lab.submit("winner", BOB, cores=12, priority=HIGH) == []
    assert jobs_of(lab.end("urgent")) == ["other"]
    assert lab.tick(101.0) == []
    assert jobs_of(lab.end("other", Outcome.KILLED)) == ["winner"]


def test_a_suspended_job_that_is_overdue_comes_first_and_gives_way_no_more() -> None:
    lab = Ladder(rules={"bound_s": 1000.0, "overdue_part": 0.5}, victim=STILL, stays={"cores": 8})
    lab.submit("urgent", BOB, cores=8, priority=HIGH)
    lab.suspended("victim")
    lab.start("urgent")
    lab.submit("next", BOB, cores=8, priority=HIGH)
    lab.tick(1101.0)
    assert jobs_of(lab.end("urgent")) == ["victim"]
    assert lab.job("victim").is_settled


def test_a_suspended_job_gives_up_what_it_keeps_if_it_may_and_that_is_needed() -> None:
    may = {**STILL, "preemption": (SUSPEND, CHECKPOINT), "memory_bytes": 40 * GIB}
    lab = Ladder(victim=may, stays={"cores": 8})
    lab.submit("urgent", BOB, cores=4, priority=HIGH)
    lab.suspended("victim")
    [preempt] = lab.submit("large", BOB, memory_bytes=40 * GIB, priority=HIGH)
    assert isinstance(preempt, Preempt)
    assert jobs_of(lab.end("victim", Outcome.KILLED)) == ["large"]
    assert lab.job("victim").state is JobState.QUEUED


@pytest.mark.parametrize("reached", ["shrinking", "suspending", "suspended", "resuming"])
def test_a_job_can_be_cancelled_in_every_state(reached: str) -> None:
    lab = Ladder(victim=ELASTIC if reached == "shrinking" else STILL, stays={"cores": 7})
    lab.submit("urgent", BOB, gpus=1, cores=9, priority=HIGH)
    if reached == "shrinking":
        lab = Ladder(victim=ELASTIC)
        lab.submit("urgent", BOB, gpus=1, priority=HIGH)
    if reached in {"suspended", "resuming"}:
        lab.suspended("victim")
    if reached == "resuming":
        lab.end("urgent")
    assert lab.job("victim").state == reached
    assert "victim" in jobs_of(lab.cancel("victim"))
    assert lab.job("victim").state is JobState.STOPPING
    lab.end("victim", Outcome.KILLED)
    assert lab.job("victim").outcome is Outcome.CANCELLED


def test_a_stop_may_overtake_a_job_that_is_shrinking() -> None:
    rules = {"quantum_s": 60.0}
    lab = Ladder(rules=rules, victim={**ELASTIC, "preemption": (SHRINK, CHECKPOINT)})
    lab.submit("urgent", BOB, gpus=1, priority=HIGH)
    lab.cancel("urgent")
    assert lab.submit("gang", BOB, gpus=3, priority=HIGH) == []
    [preempt] = lab.tick(160.0)
    assert isinstance(preempt, Preempt)
    assert (preempt.winner, lab.job("victim").state) == ("gang", JobState.PREEMPTING)
    assert lab.shrunk("victim", 3) == []
    assert jobs_of(lab.end("victim", Outcome.KILLED)) == ["gang"]


def test_the_mildest_rung_that_frees_enough_is_taken() -> None:
    stops = {"priority": LOW, "gpus": 1, "preemption": (CHECKPOINT,)}
    throws = {"priority": LOW, "gpus": 1, "preemption": (REQUEUE,)}
    lab = Ladder(throws=throws, stops=stops, elastic={**ELASTIC, "gpus": 2, "priority": "normal"})
    assert _steps(lab.submit("one", BOB, gpus=1, priority=HIGH)) == {"elastic": "shrink"}
    lab.shrunk("elastic", 3)
    assert _steps(lab.submit("two", BOB, gpus=1, priority=HIGH)) == {"stops": "checkpoint"}
    lab.end("stops", Outcome.KILLED)
    assert _steps(lab.submit("three", BOB, gpus=1, priority=HIGH)) == {"throws": "requeue"}


def test_each_job_takes_its_own_mildest_step_that_helps() -> None:
    lab = Ladder(
        stops={"priority": LOW, "gpus": 2, "preemption": (CHECKPOINT, REQUEUE)},
        elastic={**ELASTIC, "gpus": 2, "preemption": (SHRINK, CHECKPOINT)},
    )
    found = _steps(lab.submit("gang", BOB, gpus=3, priority=HIGH))
    assert found == {"stops": "checkpoint", "elastic": "shrink"}


def test_at_equal_standing_the_one_gives_way_that_loses_least() -> None:
    throws = {"gpus": 2, "priority": LOW, "preemption": (REQUEUE,)}
    lab = Lab(gpus=4, settings=Settings(bound_s=None, ageing_s=None))
    for name in ("young", "old"):
        lab.submit(name, **throws)
    lab.start("old")
    lab.tick(50.0)
    lab.start("young")
    lab.tick(150.0)
    assert jobs_of(lab.submit("one", BOB, gpus=1, priority=HIGH)) == ["young"]


def _steps(decisions: list[Decision]) -> dict[str, str]:
    names = {Shrink: "shrink", Suspend: "suspend"}
    return {
        str(one.job): str(one.step) if isinstance(one, Preempt) else names[type(one)]
        for one in decisions
    }


@pytest.mark.parametrize("told", [{"expected_s": 150.0}, {"time_limit_s": 150.0}])
def test_a_job_that_is_nearly_done_is_left_to_end(told: dict[str, Any]) -> None:
    may = {"priority": LOW, "gpus": 4, "preemption": (CHECKPOINT,)}
    lab = Ladder(victim={**may, **told})
    assert lab.submit("urgent", BOB, gpus=1, priority=HIGH) == []
    lab = Ladder(rules={"restart_s": 40.0}, victim={**may, **told})
    assert jobs_of(lab.submit("urgent", BOB, gpus=1, priority=HIGH)) == ["victim"]


def test_a_job_that_outran_what_was_expected_of_it_is_not_spared() -> None:
    may = {"priority": LOW, "gpus": 4, "preemption": (CHECKPOINT,), "expected_s": 150.0}
    lab = Ladder(victim=may)
    assert lab.submit("urgent", BOB, gpus=1, priority=HIGH) == []
    assert lab.tick(149.0) == []
    assert lab.scheduler.next_wakeup() == 150.0
    assert jobs_of(lab.tick(150.0)) == ["victim"]


def test_a_victim_is_told_when_it_comes_back_only_where_that_is_known() -> None:
    may = {"priority": LOW, "gpus": 4, "preemption": (CHECKPOINT,)}
    [known] = Ladder(victim=may).submit("a", BOB, gpus=1, priority=HIGH, expected_s=7200.0)
    assert known.reason == "job a of class high needs its units; it comes back after about 2 h"
    lab = Ladder(victim=may)
    lab.submit("other", BOB, gpus=4, priority=LOW)
    [unknown] = lab.submit("a", BOB, gpus=1, priority=HIGH, expected_s=7200.0)
    assert unknown.reason.endswith("; it keeps its place by class, fair share and order")


def test_a_lab_takes_no_step_that_it_cannot_carry_out() -> None:
    lab = Ladder(rules={"steps": (CHECKPOINT,)})
    with pytest.raises(NeverFits, match="preemption=shrink: this lab cannot") as refused:
        lab.submit("a", **ELASTIC)
    assert refused.value.next_step == "Choose among checkpoint, or none"


@pytest.mark.parametrize("least", [0, 5, None])
def test_how_far_a_job_shrinks_must_be_said_and_possible(least: int | None) -> None:
    with pytest.raises(NeverFits, match=r"min_gpus|how far"):
        Ladder().submit("a", **{**ELASTIC, "min_gpus": least})
