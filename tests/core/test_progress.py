"""What a job says of its progress: when it ends, and what it is spared."""

from typing import Any

import pytest

from tests.core.builders import BOB, HIGH, LOW, Lab, jobs_of
from workbench.core.errors import IllegalEvent
from workbench.core.events import ProgressMade
from workbench.core.model import Outcome, Preemption
from workbench.core.settings import Settings
from workbench.core.state import expected_end
from workbench.policies.sjf import Srtf

MAY = {"preemption": (Preemption.CHECKPOINT,)}


def lab_with(*, policy: Any = None, **jobs: dict[str, Any]) -> Lab:
    lab = Lab(gpus=len(jobs), policy=policy, settings=Settings(bound_s=None, ageing_s=None))
    for job, request in jobs.items():
        lab.submit(job, **{"gpus": 1, "priority": LOW, **MAY, **request})
        lab.start(job)
    return lab


def report(lab: Lab, at: float, part: float, job: str = "job") -> list[Any]:
    return lab.send(ProgressMade(at=at, lease=lab.lease(job), part=part))


def test_progress_tells_when_a_job_ends_better_than_what_was_declared() -> None:
    lab = lab_with(job={"expected_s": 200.0})
    report(lab, 100.0, 0.04)
    assert expected_end(lab.state, lab.job("job")) == 200.0
    report(lab, 160.0, 0.16)
    assert expected_end(lab.state, lab.job("job")) == pytest.approx(1000.0)


def test_no_job_outlives_its_time_limit() -> None:
    lab = lab_with(job={"time_limit_s": 300.0})
    report(lab, 100.0, 0.1)
    assert expected_end(lab.state, lab.job("job")) == 300.0


def test_progress_never_falls_within_a_lease() -> None:
    lab = lab_with(job={})
    report(lab, 100.0, 0.5)
    report(lab, 160.0, 0.5)
    with pytest.raises(IllegalEvent, match=r"never falls, and the job was at 0\.5"):
        report(lab, 220.0, 0.4)
    with pytest.raises(IllegalEvent, match="a part is from 0 to 1"):
        report(lab, 220.0, 1.5)


@pytest.mark.parametrize(
    ("step", "kept"), [(Preemption.CHECKPOINT, 0.5), (Preemption.REQUEUE, None)], ids=str
)
def test_progress_that_is_thrown_away_is_forgotten(step: Preemption, kept: float | None) -> None:
    lab = lab_with(job={"preemption": (step,)})
    report(lab, 1000.0, 0.5)
    lab.submit("urgent", BOB, gpus=1, priority=HIGH)
    lab.end("job", Outcome.KILLED)
    progress = lab.job("job").progress
    assert (progress and progress.part) == kept
    lab.start("urgent")
    lab.end("urgent")
    lab.start("job")
    report(lab, 1100.0, 0.1)  # A lease may begin at an older checkpoint.
    spent_s = 100.0 if step is Preemption.REQUEUE else 1000.0 - 60.0 + 100.0
    assert expected_end(lab.state, lab.job("job")) == pytest.approx(1100.0 + 9 * spent_s)


def test_of_jobs_alike_the_one_that_is_further_stays() -> None:
    lab = lab_with(silent={}, near={}, far={})
    report(lab, 500.0, 0.8, "far")
    report(lab, 500.0, 0.2, "near")
    order = [job for _, _, job in lab.worst_first()]
    assert order == ["silent", "near", "far"]
    assert jobs_of(lab.submit("urgent", BOB, gpus=2, priority=HIGH)) == ["silent", "near"]


def test_progress_outweighs_no_class() -> None:
    lab = lab_with(far={"priority": LOW}, near={"priority": "normal"})
    report(lab, 500.0, 0.8, "far")
    assert jobs_of(lab.submit("urgent", BOB, gpus=1, priority=HIGH)) == ["far"]


def test_a_job_that_is_nearly_done_gives_way_to_nobody_for_as_long_as_a_restart_costs() -> None:
    lab = lab_with(job={})
    report(lab, 950.0, 0.95)  # 50 s are left.
    assert lab.submit("urgent", BOB, gpus=1, priority=HIGH) == []
    assert lab.scheduler.next_wakeup() == 1010.0
    assert lab.tick(1009.0) == []
    assert jobs_of(lab.tick(1010.0)) == ["job"]


def test_a_job_comes_to_be_nearly_done_between_two_reports() -> None:
    lab = lab_with(job={})
    report(lab, 900.0, 0.9)  # 100 s are left.
    lab.tick(939.0)
    assert jobs_of(lab.submit("urgent", BOB, gpus=1, priority=HIGH)) == ["job"]
    lab = lab_with(job={})
    report(lab, 900.0, 0.9)
    lab.tick(940.0)
    assert lab.submit("urgent", BOB, gpus=1, priority=HIGH) == []


def test_a_job_is_spared_only_once_by_what_it_says_of_itself() -> None:
    lab = lab_with(job={})
    lab.submit("urgent", BOB, gpus=1, priority=HIGH, wait_limit_s=70.0)
    lab = lab_with(job={})
    for at in range(60, 600, 60):
        report(lab, float(at), 1.0 - 1 / at)
    assert jobs_of(lab.submit("urgent", BOB, gpus=1, priority=HIGH)) == ["job"]


@pytest.mark.parametrize("field", ["expected_s", "time_limit_s"])
def test_a_job_that_is_declared_to_be_nearly_done_is_spared(field: str) -> None:
    lab = lab_with(job={field: 500.0})
    lab.tick(440.0)
    assert lab.submit("urgent", BOB, gpus=1, priority=HIGH) == []
    lab = lab_with(job={field: 500.0})
    lab.tick(439.0)
    assert jobs_of(lab.submit("urgent", BOB, gpus=1, priority=HIGH)) == ["job"]


def test_a_declaration_that_was_wrong_spares_nobody() -> None:
    lab = lab_with(job={"expected_s": 500.0})
    lab.tick(460.0)
    assert lab.submit("urgent", BOB, gpus=1, priority=HIGH) == []
    assert jobs_of(lab.tick(500.0)) == ["job"]


def test_a_policy_that_orders_by_run_times_weighs_them_in_its_class_itself() -> None:
    lab = lab_with(policy=Srtf(), job={"expected_s": 500.0})
    lab.tick(450.0)
    assert jobs_of(lab.submit("short", BOB, gpus=1, priority=LOW, expected_s=10.0)) == ["job"]
    lab = lab_with(policy=Srtf(), job={"expected_s": 500.0})
    lab.tick(450.0)
    assert lab.submit("short", BOB, gpus=1, priority=HIGH, expected_s=10.0) == []
