"""Drivers that do not answer, through the whole lab: the CPU goes on, and people are told."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.integration.lab import Lab
from tests.stand_ins.world import Code, StubWorld

INIT = "nvmlInitWithFlags"


def sample(lab: Lab) -> dict[str, Any]:
    run = lab.workbench("status", "--json")
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)["sample"]
    return found


@pytest.mark.parametrize(
    ("code", "state", "next_step"),
    [
        (Code.LIBRARY_NOT_FOUND, "no library", "Install"),
        (Code.DRIVER_NOT_LOADED, "driver not loaded", "modprobe nvidia"),
        (Code.LIB_RM_VERSION_MISMATCH, "version mismatch", "eboot"),
        (Code.UNKNOWN, "unknown", "dmesg"),
        (Code.NO_PERMISSION, "no permission", "/dev/nvidia"),
    ],
)
def test_a_driver_that_does_not_answer_is_named_and_cells_run(
    one_lab: Lab, nvml_stub: StubWorld, code: Code, state: str, next_step: str
) -> None:
    # rapidsai/jupyterlab-nvdashboard#69
    nvml_stub.gpus(1)
    nvml_stub.fail(INIT, code)
    one_lab.env |= nvml_stub.env
    assert one_lab.workbench("up").returncode == 0
    found = sample(one_lab)
    assert found["nvml"]["state"] == state
    assert next_step in found["nvml"]["next_step"]
    assert found["host"]["cores_usable"]["value"] >= 1
    log = (one_lab.root / "state/gpu-workbench/controller.log").read_text()
    assert log.count("NVML: ") == 1, "one line each change of state"
    notebook = one_lab.notebook()
    assert notebook.run("%%gpu-schedule\nx = 1").ok
    refused = notebook.run("%%gpu-schedule --gpus 1\nx = 1")
    assert refused.reply["ename"] == "NeverFits"


def test_a_driver_that_comes_back_is_seen_without_a_restart(
    one_lab: Lab, nvml_stub: StubWorld
) -> None:
    nvml_stub.gpus(1)
    nvml_stub.fail(INIT, Code.DRIVER_NOT_LOADED)
    one_lab.env |= nvml_stub.env
    assert one_lab.workbench("up").returncode == 0
    assert sample(one_lab)["devices"] == []
    nvml_stub.heal()
    deadline = time.monotonic() + 60
    while not sample(one_lab)["devices"]:
        assert time.monotonic() < deadline, "the driver was never asked again"
        time.sleep(0.5)
    assert one_lab.notebook().run("%%gpu-schedule --gpus 1\nx = 1").ok
