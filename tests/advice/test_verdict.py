"""CPU or GPU, from the code, the sizes and the host.

The directions come from published measurements; see docs/advice.md.
"""

import ast
from typing import Any

import numpy as np
import pytest
import torch

from workbench.advice import advise
from workbench.advice.workload import GPU_LIBRARIES, workload
from workbench.protocol.telemetry import (
    DeviceSample,
    HostSample,
    NvmlState,
    NvmlStatus,
    Reading,
    Sample,
)


def sample(*, gpus: int = 0, simulated: bool = False) -> Sample:
    devices = tuple(
        DeviceSample(
            uuid=f"GPU-{index}",
            index=index,
            name="A100",
            simulated=simulated,
            memory_total_bytes=Reading(80 * 2**30),
            memory_used_bytes=Reading(0),
            util_pct=Reading(0),
        )
        for index in range(gpus)
    )
    host = HostSample(
        hostname="lab",
        cpu_util_pct=Reading(1.0),
        cores_usable=Reading(8),
        cores_total=Reading(8),
        memory_total_bytes=Reading(2**36),
        memory_available_bytes=Reading(2**35),
    )
    nvml = NvmlState(state=NvmlStatus.OK)
    return Sample(at_unix_s=0.0, host=host, devices=devices, nvml=nvml)


def verdict(code: str, *, gpus: int = 1, simulated: bool = False, **names: Any) -> str:
    advice = advise(ast.parse(code), names, sample(gpus=gpus, simulated=simulated))
    assert advice.gpus == (1 if advice.device == "gpu" else 0)
    return advice.text


def test_plain_numpy_belongs_on_the_cpu_however_large() -> None:
    big = np.zeros(10_000_000)
    assert verdict("np.linalg.norm(big)", np=np, big=big).startswith(
        "CPU: nothing in this cell can use a GPU (numpy)"
    )


def test_torch_code_that_never_names_a_device_would_leave_the_gpu_idle() -> None:
    net = torch.nn.Linear(4096, 4096)
    text = verdict("net(x)", net=net, x=torch.zeros(1), torch=torch)
    assert text.startswith("CPU: the code uses torch but never names a device")


def test_a_large_model_that_moves_itself_belongs_on_the_gpu() -> None:
    net = torch.nn.Linear(4096, 4096)
    text = verdict("net.to(device)", net=net, device="cuda:0", torch=torch)
    assert text.startswith("1 GPU: torch code that names a device, 0 B of input, 16,781,312 para")


def test_a_small_perceptron_belongs_on_the_cpu() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    assert verdict("net.to(device)", net=net, device="cuda:0").startswith("CPU: small")


def test_a_host_without_a_gpu_says_so() -> None:
    net = torch.nn.Linear(4096, 4096)
    text = verdict("net.to('cuda')", gpus=0, net=net)
    assert "this host has none" in text


def test_a_simulated_gpu_is_never_chosen_by_itself() -> None:
    net = torch.nn.Linear(4096, 4096)
    assert "none but SIMULATED ones" in verdict("net.to('cuda')", simulated=True, net=net)


def test_what_the_user_asked_for_is_obeyed_and_said() -> None:
    for device, word in (("gpu", "1 GPU"), ("cpu", "CPU")):
        advice = advise(ast.parse("1"), {}, sample(gpus=1), device=device)
        assert advice.text == f"{word}: asked for: --device {device} (confidence: high)"


def test_an_unknown_host_is_not_taken_for_one_without_a_gpu() -> None:
    advice = advise(ast.parse("import cupy"), {}, None)
    assert (advice.device, advice.confidence) == ("cpu", "low")
    assert "not known yet" in advice.reason


def test_imports_inside_the_cell_count() -> None:
    assert verdict("import cupy\ncupy.zeros(3)").startswith("1 GPU: cupy runs on a GPU only")


NO_SOURCE = """
def build(kind):
    def move(x):
        return x.to(kind)
    return move(torch.ones(3))

class Net:
    @staticmethod
    def layer():
        return torch.zeros(3, device="cuda")

def lazily():
    import cupy.linalg

def outer():
    return build(1)
"""


@pytest.mark.parametrize(
    ("code", "libraries", "asks"),
    [
        ("outer()", {"torch"}, True),
        ("Net()", {"torch"}, True),
        ("lazily()", {"cupy"}, False),
        ("torch.ones(3)", {"torch"}, False),
    ],
)
def test_functions_are_read_where_no_source_is(
    code: str, libraries: set[str], *, asks: bool
) -> None:
    names = {"__name__": "__main__", "torch": torch}
    exec(NO_SOURCE, names)
    found = workload(ast.parse(code), names)
    assert found.libraries & set(GPU_LIBRARIES) == libraries
    assert found.asks_for_device is asks
