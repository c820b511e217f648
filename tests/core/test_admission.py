from dataclasses import replace
from typing import Any

import pytest

from tests.core.builders import ALICE, GIB, Lab, seen, submitted
from workbench.core.errors import IllegalEvent, NeverFits
from workbench.core.events import HostSeen
from workbench.core.scheduler import Scheduler
from workbench.policies.fifo import Fifo

REFUSALS = {
    # It4innovations/hyperqueue#455: a request that can never run waits for ever.
    "nine GPUs on eight": (
        {"gpus": 9},
        "gpus=9: this host has 8 GPUs",
        "Ask for at most 8 GPUs",
    ),
    "100 GiB on 80 GiB cards": (
        {"gpus": 1, "gpu_memory_bytes": 100 * GIB},
        "gpu_memory=100 GiB: the largest GPU of this host has 80 GiB",
        "Ask for 1 GPU with at most 80 GiB of memory each",
    ),
    "more large GPUs than there are": (
        {"gpus": 3, "gpu_memory_bytes": 60 * GIB},
        "gpus=3: this host has 2 GPUs with 60 GiB or more",
        "Ask for at most 2 GPUs, or for at most 40 GiB of memory each",
    ),
    "more cores": ({"cores": 17}, "cores=17: this host has 16 cores", "Ask for at most 16 cores"),
    "more memory": (
        {"memory_bytes": 65 * GIB},
        "memory=65 GiB: this host has 64 GiB",
        "Ask for at most 64 GiB of host memory",
    ),
    "negative GPUs": ({"gpus": -1}, "gpus=-1 is less than 0", "Ask for at least 0"),
    "no cores": ({"cores": 0}, "cores=0 is less than 1", "Ask for at least 1"),
    "no memory": ({"memory_bytes": 0}, "memory_bytes=0 is less than 1", "Ask for at least 1"),
    "negative GPU memory": (
        {"gpus": 1, "gpu_memory_bytes": -5},
        "gpu_memory_bytes=-5 is less than 1",
        "Ask for at least 1",
    ),
    "no time": (
        {"time_limit_s": 0},
        "time_limit_s=0 is not a finite time of more than 0 seconds",
        "Give a time of more than 0 seconds, or none",
    ),
    "endless wait": (
        {"wait_limit_s": float("inf")},
        "wait_limit_s=inf is not a finite time of more than 0 seconds",
        "Give a time of more than 0 seconds, or none",
    ),
    "not a number": (
        {"time_limit_s": float("nan")},
        "time_limit_s=nan is not a finite time of more than 0 seconds",
        "Give a time of more than 0 seconds, or none",
    ),
}


def lab_with_eight_gpus() -> Lab:
    lab = Lab()
    for number in range(8):
        lab.send(seen(0, number, memory_gib=80 if number < 2 else 40))
    return lab


@pytest.mark.parametrize("case", REFUSALS)
def test_what_can_never_run_is_refused_with_the_largest_that_would_fit(case: str) -> None:
    request, message, next_step = REFUSALS[case]
    lab = lab_with_eight_gpus()
    with pytest.raises(NeverFits) as refusal:
        lab.submit("a", **request)
    assert (refusal.value.message, refusal.value.next_step) == (message, next_step)
    assert lab.state.jobs == {}


@pytest.mark.parametrize(
    "request_",
    [
        {"gpus": 8},
        {"gpus": 2, "gpu_memory_bytes": 80 * GIB},
        {"gpus": 8, "gpu_memory_bytes": 40 * GIB},
        {"cores": 16, "memory_bytes": 64 * GIB},
    ],
)
def test_the_largest_that_fits_is_granted(request_: dict[str, Any]) -> None:
    assert len(lab_with_eight_gpus().submit("a", **request_)) == 1


def test_on_a_host_without_gpus_a_gpu_job_is_told_so() -> None:
    with pytest.raises(NeverFits, match="gpus=1: there is no GPU on this host"):
        Lab().submit("a", gpus=1)


def test_a_lost_gpu_still_counts_as_one_that_may_come_back() -> None:
    lab = Lab(gpus=2)
    lab.lose(0)
    lab.lose(1, missing=True)
    assert lab.submit("a", gpus=2) == []


def test_gpu_memory_that_the_driver_does_not_say_cannot_be_promised() -> None:
    lab = Lab()
    lab.send(seen(0, 0, memory_gib=None))
    with pytest.raises(NeverFits, match="no GPU of this host says how much memory it has"):
        lab.submit("a", gpus=1, gpu_memory_bytes=GIB)
    assert len(lab.submit("b", gpus=1)) == 1


def test_simulated_and_real_gpus_do_not_add_up() -> None:
    lab = Lab(gpus=2)
    lab.send(seen(0, 7, simulated=True))
    with pytest.raises(NeverFits, match="this host has 2 GPUs"):
        lab.submit("a", gpus=3)


def test_the_largest_that_would_fit_is_never_rounded_up() -> None:
    lab = Lab()
    lab.send(replace(seen(0, 0), memory_bytes=80 * GIB - 1))
    with pytest.raises(NeverFits, match=r"at most 79\.99 GiB"):
        lab.submit("a", gpus=1, gpu_memory_bytes=80 * GIB)


def test_a_repeated_submission_is_not_checked_again_after_the_host_shrank() -> None:
    lab = Lab(cores=4)
    lab.submit("a", cores=4)
    lab.send(HostSeen(at=0, cores=2, memory_bytes=GIB))
    assert lab.submit("a", cores=4) == []


def test_a_job_before_the_host_was_seen_is_the_drivers_mistake() -> None:
    with pytest.raises(IllegalEvent, match="before the host was seen"):
        Scheduler(Fifo()).handle(submitted(0, "a", ALICE))


def test_a_simulated_gpu_that_was_taken_away_does_not_come_back_by_itself() -> None:
    lab = Lab()
    lab.send(seen(0, 7, simulated=True))
    lab.lose(7, missing=True)
    with pytest.raises(NeverFits, match="there is no GPU on this host"):
        lab.submit("a", gpus=1)
