"""GPUs leased by UUID, on the stand-in NVML: one controller, many jobs, odd drivers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.lab import Lab
from tests.stand_ins.world import Code, StubWorld

SHOW = "import os\nshown = (os.environ['CUDA_VISIBLE_DEVICES'], os.environ['CUDA_DEVICE_ORDER'])"
HOLD = "import os, time\nprint(os.environ['CUDA_VISIBLE_DEVICES'])\nwhile not os.path.exists('go'):\n    time.sleep(0.05)"


@pytest.fixture
def gpu_lab(one_lab: Lab, nvml_stub: StubWorld) -> Lab:
    """A lab whose processes find the stand-in NVML."""
    one_lab.env |= nvml_stub.env
    return one_lab


def jobs(lab: Lab) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(lab.workbench("jobs", "--json").stdout)
    return listed


def until(true: Callable[[], bool], *, timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.1)


def test_the_job_sees_exactly_its_gpu_by_uuid(gpu_lab: Lab, nvml_stub: StubWorld) -> None:
    # gpustack/gpustack#1633: NVML's order and CUDA's differ; the UUID does not.
    nvml_stub.gpus(2)
    nvml_stub.fastest_first = True
    nvml_stub.write()
    notebook = gpu_lab.notebook()
    run = notebook.run(f"%%gpu-schedule --gpus 1\n{SHOW}")
    assert run.ok, run.error
    assert notebook.run("shown").result == repr((nvml_stub.uuids[0], "PCI_BUS_ID"))
    run = notebook.run("%%gpu-schedule --gpus 1\nimport workbench\nwhere = workbench.device()")
    assert run.ok, run.error
    assert notebook.run("where").result == "'cuda:0'"
    run = notebook.run("%%gpu-schedule\nimport os\nnone = os.environ['CUDA_VISIBLE_DEVICES']")
    assert run.ok, run.error
    assert notebook.run("none").result == "''"


def test_one_jobs_gpus_are_never_anothers(gpu_lab: Lab, nvml_stub: StubWorld) -> None:
    # jupyter-server/jupyter-scheduler#447: as many run as there are GPUs, no more.
    nvml_stub.gpus(3)
    nvml_stub.write()
    notebook = gpu_lab.notebook()
    for number in range(7):
        run = notebook.run(f"%%gpu-schedule --gpus 1 --cpus 1 --detach --name n{number}\n{HOLD}")
        assert run.ok, run.error
    # The host has too few cores for three jobs where it has two; then cores bound it.
    until(lambda: sum(one["state"] == "running" for one in jobs(gpu_lab)) >= 2)
    leased = [gpu for one in jobs(gpu_lab) for gpu in one["gpus"]]
    assert len(leased) == len(set(leased)) <= 3
    (gpu_lab.work / "go").touch()
    until(lambda: not jobs_alive(gpu_lab), timeout_s=60)


def jobs_alive(lab: Lab) -> list[dict[str, Any]]:
    return [one for one in jobs(lab) if one["state"] != "ended"]


def test_a_lost_gpu_does_not_poison_the_others(gpu_lab: Lab, nvml_stub: StubWorld) -> None:
    # NVIDIA/k8s-device-plugin#2038, wookayin/gpustat#125
    nvml_stub.gpus(3)
    nvml_stub.write()
    nvml_stub.lose(nvml_stub.uuids[0])
    notebook = gpu_lab.notebook()
    run = notebook.run(f"%%gpu-schedule --gpus 1\n{SHOW}")
    assert run.ok, run.error
    assert notebook.run("shown[0]").result in {repr(uuid) for uuid in nvml_stub.uuids[1:]}
    run = notebook.run("%%gpu-schedule --gpus 4\nx = 1")
    assert run.reply["ename"] == "NeverFits"


def test_unsupported_utilisation_is_not_a_number(gpu_lab: Lab, nvml_stub: StubWorld) -> None:
    # dask/distributed#5342
    nvml_stub.gpus(1)
    nvml_stub.set(nvml_stub.uuids[0], errors={"nvmlDeviceGetUtilizationRates": Code.NOT_SUPPORTED})
    nvml_stub.write()
    notebook = gpu_lab.notebook()
    shown = notebook.run("%gpu-status").result or ""
    assert "n/a (not supported" in shown


def test_simulated_gpus_say_so_and_are_never_chosen_by_themselves(one_lab: Lab) -> None:
    up = one_lab.workbench("up", "--simulate", "4xA100-SXM4-80GB")
    assert up.returncode == 0, up.stderr
    assert "SIMULATED" in up.stdout
    notebook = one_lab.notebook()
    assert (notebook.run("%gpu-status").result or "").count("SIMULATED") >= 4
    run = notebook.run("%%gpu-schedule --gpus 1\nimport workbench\nwhere = workbench.device()")
    assert run.ok, run.error
    assert "SIMULATED" in run.displays[-1]
    assert notebook.run("where").result == "'cpu'"
