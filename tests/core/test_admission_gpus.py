from typing import Any

import pytest

from tests.core.builders import GIB, Lab, gpu, jobs_of, seen
from workbench.core.errors import NeverFits

SHARE = {"gpus": 1, "share_bytes": 8 * GIB}


def mixed_lab() -> Lab:
    """An A100 with slices, an A100 of 80 GiB, two RTX of 24 GiB, a GPU of unknown memory."""
    lab = Lab()
    lab.send(seen(0, 0, model="NVIDIA A100"))
    for number, memory_gib in ((10, 10), (11, 10), (12, 20)):
        profile = f"{memory_gib // 10}g.{memory_gib}gb"
        lab.send(seen(0, number, memory_gib=memory_gib, mig=profile, parent=gpu(0)))
    lab.send(seen(0, 1, model="NVIDIA A100"))
    for number in (2, 3):
        lab.send(seen(0, number, memory_gib=24, model="RTX 3090"))
    lab.send(seen(0, 4, memory_gib=None, model="T4"))
    return lab


REFUSALS: dict[str, tuple[dict[str, Any], str, str]] = {
    "a share larger than the largest GPU less its margin": (
        {"gpus": 1, "share_bytes": 77 * GIB},
        "share=77 GiB: the largest GPU of this host gives at most 76 GiB to shares",
        "Ask for at most 76 GiB, or for a GPU without a share",
    ),
    "a share larger than what the model has": (
        {"gpus": 1, "share_bytes": 23 * GIB, "models": ("rtx",)},
        "share=23 GiB: the largest GPU of this host gives at most 22.79 GiB to shares",
        "Ask for at most 22.79 GiB, or for a GPU without a share",
    ),
    "a share of a GPU of unknown memory": (
        {**SHARE, "models": ("T4",)},
        "share=8 GiB: no GPU of this host says how much memory it has",
        "Ask for a GPU without a share",
    ),
    "a share of GPUs that are larger than any": (
        {**SHARE, "gpu_memory_bytes": 100 * GIB},
        "gpu_memory=100 GiB: the largest GPU of this host has 80 GiB",
        "Ask for 1 GPU with at most 80 GiB of memory each",
    ),
    "a share of two GPUs": (
        {**SHARE, "gpus": 2},
        "share=8 GiB and gpus=2: a share is of one GPU",
        "Ask for 1 GPU, or for whole GPUs without a share",
    ),
    "a share without a GPU": (
        {**SHARE, "gpus": 0},
        "share=8 GiB and gpus=0: a share is of one GPU",
        "Ask for 1 GPU, or for whole GPUs without a share",
    ),
    "a share of a slice": (
        {**SHARE, "mig": "1g.10gb"},
        "share=8 GiB and mig=1g.10gb: a slice is not shared",
        "Ask for one of the two",
    ),
    "a share of nothing": (
        {"gpus": 1, "share_bytes": 0},
        "share_bytes=0 is less than 1",
        "Ask for at least 1",
    ),
    "a profile that is not there": (
        {"gpus": 1, "mig": "7g.80gb"},
        "mig=7g.80gb: this host has no such slice",
        "Ask for one of 1g.10gb, 2g.20gb",
    ),
    "more slices than there are": (
        {"gpus": 3, "mig": "1g.10gb"},
        "gpus=3: this host has 2 slices 1g.10gb",
        "Ask for at most 2 slices 1g.10gb",
    ),
    "larger slices than there are": (
        {"gpus": 3, "mig": "1g.10gb", "gpu_memory_bytes": 11 * GIB},
        "gpu_memory=11 GiB: the largest GPU of this host has 10 GiB",
        "Ask for 2 slices 1g.10gb with at most 10 GiB of memory each",
    ),
    "no profile": (
        {"gpus": 1, "mig": " "},
        "mig=' ' names no profile",
        "Name one such as `1g.10gb`, or none for whole GPUs",
    ),
    "a profile and no slice": (
        {"gpus": 0, "mig": "1g.10gb"},
        "mig=1g.10gb and gpus=0: no slice is asked for",
        "Ask for at least 1 slice, or for no profile",
    ),
    "models that are not there": (
        {"gpus": 1, "models": ("H100", "GPU-ffff")},
        "models=H100, GPU-ffff: no GPU of this host is called so",
        "Ask for one of NVIDIA A100, RTX 3090, T4",
    ),
    "more of a model than there are": (
        {"gpus": 3, "models": ("a100", "rtx")},
        "gpus=3: this host has 2 GPUs (a100 or rtx)",
        "Ask for at most 2 GPUs (a100 or rtx)",
    ),
    "larger ones of a model than there are": (
        {"gpus": 2, "models": ("a100", "rtx"), "gpu_memory_bytes": 30 * GIB},
        "gpus=2: this host has 1 GPU (a100 or rtx) with 30 GiB or more",
        "Ask for at most 1 GPU (a100 or rtx), or for at most 24 GiB of memory each",
    ),
    "a model without a name": (
        {"gpus": 1, "models": ("a100", " ")},
        "models=['a100', ' ']: one of them names nothing",
        "Name a part of a model or of a UUID, or no model",
    ),
    "a GPU that is split": (
        {"gpus": 5},
        "gpus=5: this host has 4 GPUs",
        "Ask for at most 4 GPUs",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_can_never_run_is_refused_with_the_nearest_that_could(case: str) -> None:
    request, message, next_step = REFUSALS[case]
    lab = mixed_lab()
    with pytest.raises(NeverFits) as refusal:
        lab.submit("a", **request)
    assert (refusal.value.message, refusal.value.next_step) == (message, next_step)
    assert lab.state.jobs == {}


@pytest.mark.parametrize(
    "request_",
    [
        {"gpus": 1, "share_bytes": 76 * GIB},
        {"gpus": 1, "share_bytes": 22 * GIB, "models": ("rtx",)},
        {"gpus": 2, "mig": "1g.10gb"},
        {"gpus": 2, "models": ("h100", "RTX 3090")},
        {"gpus": 4},
    ],
)
def test_the_nearest_that_could_is_granted(request_: dict[str, Any]) -> None:
    assert jobs_of(mixed_lab().submit("a", **request_)) == ["a"]


def test_where_every_gpu_is_split_slices_are_named() -> None:
    lab = Lab(gpus=1)
    lab.send(seen(0, 10, memory_gib=10, mig="1g.10gb", parent=gpu(0)))
    with pytest.raises(NeverFits) as refusal:
        lab.submit("a", gpus=1)
    assert refusal.value.message == "gpus=1: all GPUs of this host are split into slices"
    assert refusal.value.next_step == "Ask for slices: 1g.10gb"


def test_on_a_host_without_slices_whole_gpus_and_shares_are_named() -> None:
    with pytest.raises(NeverFits) as refusal:
        Lab(gpus=1).submit("a", gpus=1, mig="1g.10gb")
    assert refusal.value.next_step == "Ask for whole GPUs, or for a share of one"


def test_a_missing_slice_may_come_back() -> None:
    lab = mixed_lab()
    lab.lose(10, missing=True)
    assert lab.submit("a", gpus=2, mig="1g.10gb") == []
