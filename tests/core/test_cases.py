"""What went wrong elsewhere, replayed on the core: each names where it was reported."""

from typing import Any

import pytest

from tests.core.builders import ALICE, BOB, GIB, HIGH, Lab, gpu, jobs_of, seen
from workbench.core.errors import NeverFits
from workbench.core.events import DeviceBusyOutside, DrainEnded, DrainStarted
from workbench.core.explain import explain
from workbench.core.model import DeviceStatus, JobId, JobState, Outcome
from workbench.core.settings import Settings


def reason(lab: Lab, job: str) -> str:
    return explain(lab.state, lab.scheduler.standings, JobId(job)).reason


def start(lab: Lab, *jobs: str, **request: Any) -> None:
    for job in jobs:
        lab.submit(job, **request)
        lab.start(job)


def test_a_lost_gpu_does_not_poison_the_others() -> None:
    """NVIDIA/k8s-device-plugin#2038, #231."""
    lab = Lab()
    for number in range(4):
        lab.send(seen(0, number, island="ab"[number // 2]))
    lab.lose(1)
    start(lab, "a", "b", "c", gpus=1)
    assert {*lab.gpus_of("a"), *lab.gpus_of("b"), *lab.gpus_of("c")} == {gpu(0), gpu(2), gpu(3)}
    assert lab.submit("d", gpus=1) == []
    assert "GPU-00000001 is lost (Xid 79)" in reason(lab, "d")


def test_where_islands_cannot_be_looked_up_gangs_are_placed_all_the_same() -> None:
    """NVIDIA/k8s-device-plugin#2038: the topology of the lost one cannot be read."""
    lab = Lab()
    for number in range(4):
        lab.send(seen(0, number, island="" if number == 1 else "a"))
    lab.submit("a", gpus=4)
    assert sorted(lab.gpus_of("a")) == [gpu(number) for number in range(4)]


def test_fewer_gpus_move_no_lease_and_the_lease_of_the_missing_one_stays_with_it() -> None:
    """microsoft/pai#4344."""
    lab = Lab(gpus=4)
    start(lab, "a", "b", "c", gpus=1)
    lab.submit("s", gpus=1, share_bytes=8 * GIB)
    before = {job: lab.gpus_of(job) for job in "abcs"}
    assert lab.lose(1, missing=True) == []
    assert {job: lab.gpus_of(job) for job in "abcs"} == before
    assert lab.job("b").state is JobState.RUNNING
    device = lab.state.devices[gpu(1)]
    assert (device.status, device.reason) == (DeviceStatus.MISSING, "not listed")
    assert lab.submit("d", gpus=1) == []
    assert "GPU-00000001 is missing (not listed)" in reason(lab, "d")
    assert lab.end("b", Outcome.FAILED, "its GPU is missing") == []
    assert jobs_of(lab.end("c")) == ["d"]


def test_a_drain_starts_none_of_those_who_wait_and_lets_those_who_run_finish() -> None:
    """task-spooler#69: 2 running, 5 queued."""
    lab = Lab(gpus=2)
    start(lab, "a", "b", gpus=1)
    for job in "cdefg":
        lab.submit(job, gpus=1)
    assert lab.send(DrainStarted(at=1, node="", reason="a fan is replaced")) == []
    assert [lab.job(job).state for job in "ab"] == [JobState.RUNNING] * 2
    assert lab.tick(60) == []
    assert lab.end("a") == []
    assert lab.end("b") == []
    assert [lab.job(job).outcome for job in "ab"] == [Outcome.DONE] * 2
    assert [lab.job(job).state for job in "cdefg"] == [JobState.QUEUED] * 5
    for job in "cdefg":
        assert reason(lab, job) == "this host is drained, nothing new starts: a fan is replaced"
    assert jobs_of(lab.send(DrainEnded(at=61, node=""))) == ["c", "d"]


def test_a_gpu_is_not_booked_twice_while_its_job_warms_up() -> None:
    """task-spooler#59, clearml/clearml-agent#71: memory shows up 30 s after the start."""
    lab = Lab(gpus=1)
    assert jobs_of(lab.submit("a", gpus=1)) == ["a"]
    lab.tick(1)
    assert lab.submit("b", BOB, gpus=1) == []
    lab.start("a")
    for at in range(2, 40):
        assert lab.send(seen(at, 0)) == []  # A sample that shows it idle.
    assert reason(lab, "b") == "it waits for 1 GPU, 0 free: GPU-00000000 is held by job a"
    assert jobs_of(lab.end("a")) == ["b"]


def test_declared_shares_are_booked_before_their_memory_shows() -> None:
    """task-spooler#59, for shares."""
    lab = Lab(gpus=1)
    lab.submit("a", gpus=1, share_bytes=50 * GIB)
    assert lab.submit("b", BOB, gpus=1, share_bytes=50 * GIB) == []
    assert jobs_of(lab.submit("c", BOB, gpus=1, share_bytes=20 * GIB)) == ["c"]


@pytest.mark.parametrize("request_", [{"gpus": 1}, {"gpus": 1, "share_bytes": 8 * GIB}])
def test_use_from_outside_is_scheduled_around(request_: dict[str, Any]) -> None:
    """task-spooler#55, #11, clearml-agent#71."""
    lab = Lab(gpus=2)
    lab.send(DeviceBusyOutside(at=0, device=gpu(0), reason="python of uid 1009"))
    lab.submit("a", **request_)
    assert lab.gpus_of("a") == [gpu(1)]
    lab.submit("b", gpus=2)
    assert "GPU-00000000 is busy outside (python of uid 1009)" in reason(lab, "b")


@pytest.mark.parametrize("request_", [{"gpus": 1}, {"gpus": 1, "share_bytes": 70 * GIB}])
def test_a_leased_gpu_that_is_used_from_outside_is_held_after_its_lease(
    request_: dict[str, Any],
) -> None:
    """task-spooler#55: the lease keeps it, and nobody is given it until the stranger is gone."""
    lab = Lab(gpus=1)
    start(lab, "a", **request_)
    assert lab.send(DeviceBusyOutside(at=5, device=gpu(0), reason="python of uid 1009")) == []
    assert lab.job("a").state is JobState.RUNNING
    assert lab.submit("b", BOB, gpus=1) == []
    assert lab.submit("c", BOB, gpus=1, share_bytes=GIB) == []
    assert lab.end("a") == []
    assert reason(lab, "b") == (
        "it waits for 1 GPU, 0 free: GPU-00000000 is busy outside (python of uid 1009)"
    )
    assert jobs_of(lab.send(seen(9, 0))) == ["b"]


@pytest.mark.parametrize(
    ("request_", "message", "next_step"),
    [
        ({"gpus": 9}, "gpus=9: this host has 8 GPUs", "Ask for at most 8 GPUs"),
        (
            {"gpus": 1, "gpu_memory_bytes": 100 * GIB},
            "gpu_memory=100 GiB: the largest GPU of this host has 80 GiB",
            "Ask for 1 GPU with at most 80 GiB of memory each",
        ),
        (
            {"gpus": 1, "share_bytes": 80 * GIB},
            "share=80 GiB: the largest GPU of this host gives at most 76 GiB to shares",
            "Ask for at most 76 GiB, or for a GPU without a share",
        ),
        (
            {"gpus": 1, "mig": "1g.10gb"},
            "mig=1g.10gb: this host has no such slice",
            "Ask for whole GPUs, or for a share of one",
        ),
        (
            {"gpus": 1, "models": ("H100",)},
            "models=H100: no GPU of this host is called so",
            "Ask for one of A100",
        ),
    ],
)
def test_what_can_never_run_is_refused_with_the_nearest_that_could(
    request_: dict[str, Any], message: str, next_step: str
) -> None:
    """It4innovations/hyperqueue#455."""
    lab = Lab(gpus=8)
    with pytest.raises(NeverFits) as refusal:
        lab.submit("a", ALICE, **request_)
    assert (refusal.value.message, refusal.value.next_step) == (message, next_step)
    assert lab.state.jobs == {}


def test_equal_jobs_start_in_the_order_of_submission_and_an_urgent_one_is_next() -> None:
    """skypilot-org/skypilot#5493: order lost, or high priority stuck behind a long queue."""
    lab = Lab(gpus=1, settings=Settings(bound_s=None, ageing_s=None, fair_share=False))
    for number in range(40):
        lab.submit(f"equal-{number:02}", gpus=1)
    lab.submit("urgent", BOB, gpus=1, priority=HIGH)
    started = [str(job) for job in lab.state.leases.values()]
    while lab.state.leases:
        (running,) = lab.state.leases.values()
        started += jobs_of(lab.end(running))
    assert started == ["equal-00", "urgent", *(f"equal-{number:02}" for number in range(1, 40))]
