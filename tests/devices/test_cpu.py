from __future__ import annotations

import os
import subprocess
import sys

import psutil

from workbench.devices.cgroup import CgroupLimits
from workbench.devices.cpu import HostMeter, usable_cores
from workbench.protocol.telemetry import NotAvailable, Reading


def burn(seconds: float) -> None:
    """Use this much of the processor's time."""
    until = psutil.Process().cpu_times().user + seconds
    while psutil.Process().cpu_times().user < until:
        pass


def test_the_first_reading_has_no_utilisation_and_the_second_sees_the_work() -> None:
    """Case 30, jupyter-resource-usage PR#259."""
    meter = HostMeter()
    assert meter.read().cpu_util_pct == Reading(reason=NotAvailable.FIRST_SAMPLE)
    burn(0.1)
    util_pct = meter.read().cpu_util_pct.value
    assert util_pct is not None
    assert 0 < util_pct <= 100


def test_no_core_and_no_byte_beyond_the_limits_is_promised() -> None:
    limits = CgroupLimits(cores=0.5, memory_bytes=2**28, memory_left_bytes=2**20)
    sample = HostMeter(limits=lambda: limits).read()
    assert sample.cores_usable == Reading(0.5)
    assert sample.cores_total == Reading(os.cpu_count())
    assert sample.memory_total_bytes == Reading(2**28)
    assert sample.memory_available_bytes == Reading(2**20)


def test_without_limits_the_host_is_what_there_is() -> None:
    sample = HostMeter(limits=CgroupLimits).read()
    assert sample.memory_total_bytes == Reading(psutil.virtual_memory().total)


def test_memory_that_is_used_up_is_zero_and_not_unknown() -> None:
    limits = CgroupLimits(memory_bytes=2**28, memory_left_bytes=0)
    assert HostMeter(limits=lambda: limits).read().memory_available_bytes == Reading(0)


def test_affinity_limits_the_usable_cores() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from workbench.devices.cpu import usable_cores;"
        "from workbench.devices.cgroup import CgroupLimits;"
        "print(usable_cores(CgroupLimits()))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "1\n"


def test_a_quota_of_whole_cores_is_a_whole_number() -> None:
    cores = usable_cores(CgroupLimits(cores=1.0))
    assert cores == 1
    assert isinstance(cores, int)
