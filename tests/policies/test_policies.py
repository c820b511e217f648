"""What each policy orders, by the jobs that it starts and stops."""

from typing import Any

import pytest

from tests.core.builders import BOB, Lab, jobs_of
from workbench.core.decisions import Decision
from workbench.core.model import Preemption
from workbench.core.policy import Policy
from workbench.core.settings import Settings
from workbench.policies import DEFAULT_POLICY, POLICIES

MAY = {"preemption": (Preemption.CHECKPOINT,)}
BARE = Settings(bound_s=None, ageing_s=None, fair_share=False)


def lab_under(policy: str, *, gpus: int = 4) -> Lab:
    return Lab(gpus=gpus, policy=POLICIES[policy](), settings=BARE)


def run(lab: Lab, job: str, **request: Any) -> None:
    lab.submit(job, **request, **MAY)
    lab.start(job)


def tick_until_decided(lab: Lab) -> list[Decision]:
    while (woken := lab.scheduler.next_wakeup()) is not None:
        if decisions := lab.tick(woken):
            return decisions
    pytest.fail("nothing waits for time, and nothing was decided")


@pytest.mark.parametrize("name", POLICIES)
def test_each_is_found_by_its_name(name: str) -> None:
    policy: Policy = POLICIES[name]()
    assert policy.name == name
    assert DEFAULT_POLICY in POLICIES


def test_fifo_strict_lets_nothing_pass() -> None:
    lab = lab_under("fifo-strict")
    lab.submit("a", gpus=3)
    lab.submit("b", gpus=3)
    assert lab.submit("c", gpus=1) == []
    assert jobs_of(lab.end("a")) == ["b", "c"]


def test_easy_lets_pass_what_is_done_before_the_head_can_start() -> None:
    lab = lab_under("easy")
    lab.submit("running", gpus=3, expected_s=100.0)
    lab.start("running")
    lab.submit("head", gpus=4, expected_s=10.0)
    assert lab.submit("long", gpus=1, expected_s=101.0) == []
    assert jobs_of(lab.submit("short", gpus=1, expected_s=100.0)) == ["short"]


def test_easy_lets_pass_what_the_head_leaves_over() -> None:
    lab = lab_under("easy")
    lab.submit("running", gpus=3, expected_s=100.0)
    lab.start("running")
    lab.submit("head", gpus=3, expected_s=10.0)
    assert jobs_of(lab.submit("long", gpus=1, expected_s=1e6)) == ["long"]


def test_sjf_starts_the_shortest_first_and_the_unknown_last() -> None:
    lab = lab_under("sjf")
    lab.submit("first", gpus=4)
    lab.submit("unknown", gpus=4)
    lab.submit("long", gpus=4, expected_s=50.0)
    lab.submit("short", gpus=4, expected_s=5.0)
    assert [jobs_of(lab.end(job)) for job in ("first", "short", "long")] == [
        ["short"],
        ["long"],
        ["unknown"],
    ]


def test_srtf_stops_a_job_for_one_that_has_less_left() -> None:
    lab = lab_under("srtf")
    run(lab, "running", gpus=4, expected_s=1000.0)
    lab.tick(900.0)
    assert lab.submit("longer", gpus=4, expected_s=101.0) == []
    assert jobs_of(lab.submit("shorter", gpus=4, expected_s=99.0)) == ["running"]


@pytest.mark.parametrize(("name", "at"), [("las", 3250.0), ("las-2d", 3250.0 / 4)])
def test_las_stops_a_job_at_a_threshold_of_service(name: str, at: float) -> None:
    lab = lab_under(name)
    run(lab, "running", gpus=4)
    lab.submit("new", BOB, gpus=4)
    assert jobs_of(tick_until_decided(lab)) == ["running"]
    assert lab.at == pytest.approx(at)


def test_gittins_stops_a_long_runner_at_once() -> None:
    lab = lab_under("gittins")
    run(lab, "running", gpus=4)
    lab.tick(7200.0)
    assert jobs_of(lab.submit("new", BOB, gpus=4)) == ["running"]


def test_the_default_waits_for_the_price_of_a_stop() -> None:
    lab = lab_under("patient")
    run(lab, "running", gpus=4)
    lab.tick(7200.0)
    assert lab.submit("new", BOB, gpus=1) == []
    # 3 restarts of 60 s for each of the 4 GPUs that one is needed of, and 0.3 of the work.
    patient_at = lab.scheduler.next_wakeup()
    assert patient_at == pytest.approx(7200 + 3 * 60 * 4 + 0.3 * 7200)
    lab.tick(patient_at - 1)
    woken = lab.scheduler.next_wakeup()
    assert woken is not None
    assert woken > patient_at
    assert jobs_of(tick_until_decided(lab)) == ["running"]
    assert lab.at < 14_000


def test_the_default_stops_nobody_for_one_that_came_later_and_is_no_likelier_to_be_done() -> None:
    lab = lab_under("patient")
    run(lab, "running", gpus=4)
    lab.tick(100.0)
    lab.submit("new", BOB, gpus=4)
    assert lab.tick(110.0) == []
    assert lab.tick(112.0) == []


def test_the_default_keeps_a_part_of_the_lab_for_those_who_waited_long() -> None:
    lab = lab_under("patient")
    lab.submit("holds", gpus=4)
    lab.start("holds")
    lab.submit("waits", gpus=1, **MAY)
    for number in range(6):
        lab.submit(f"wide{number}", BOB, gpus=4)
    lab.tick(8 * 3600.0)
    lab.submit("new", BOB, gpus=4)
    assert jobs_of(lab.end("holds")) == ["waits"]
    assert lab.job("waits").is_settled
