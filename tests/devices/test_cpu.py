from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from workbench.devices.cgroup import CgroupLimits
from workbench.devices.cpu import HostMeter, ProcessMeter, usable_cores
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
    assert sample.load_1min.value is not None


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


@pytest.fixture
def two_children() -> Iterator[list[psutil.Process]]:
    sleepers = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
    yield [psutil.Process(sleeper.pid) for sleeper in sleepers]
    for sleeper in sleepers:
        sleeper.kill()
        sleeper.wait()


def test_a_process_is_measured_from_its_second_reading_on() -> None:
    """Case 30."""
    meter, pid = ProcessMeter(), os.getpid()
    assert meter.read([pid])[pid].cpu_pct == Reading(reason=NotAvailable.FIRST_SAMPLE)
    burn(0.05)
    use = meter.read([pid])[pid]
    assert use.cpu_pct.value
    assert use.memory_bytes.value


class Reborn:
    """A process under a pid that another had before."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self.cpu_percent = process.cpu_percent
        self.memory_info = process.memory_info

    def create_time(self) -> float:
        return self._process.create_time() + 1


def test_a_recycled_pid_starts_anew(two_children: list[psutil.Process]) -> None:
    """Case 30."""
    first, second = two_children
    holder: list[psutil.Process | Reborn] = [first]
    meter = ProcessMeter(find=lambda _: holder[0])
    meter.read([7])
    assert meter.read([7])[7].cpu_pct.value is not None
    holder[0] = Reborn(second)
    assert meter.read([7])[7].cpu_pct == Reading(reason=NotAvailable.FIRST_SAMPLE)


def test_an_ended_process_has_a_reason_instead_of_figures() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    use = ProcessMeter().read([child.pid])[child.pid]
    assert use.cpu_pct == use.memory_bytes == Reading(reason=NotAvailable.NO_SUCH_PROCESS)
