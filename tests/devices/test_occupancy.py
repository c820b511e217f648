from __future__ import annotations

import msgspec
import pytest

from tests.devices.conftest import ProbeStarter
from tests.stand_ins.world import GIB, MIB, Code, StubWorld
from workbench.devices.occupancy import outside_use
from workbench.devices.simulated import SimulatedSource, Simulation
from workbench.protocol.telemetry import NotAvailable, Reading


@pytest.mark.parametrize("used_mib", [0, 2, 3, 32])
def test_a_card_with_a_little_memory_in_use_and_no_process_is_free(
    nvml_stub: StubWorld, start_probe: ProbeStarter, used_mib: int
) -> None:
    """Case 18, blackwell-llm-docker PR#44."""
    (uuid,) = nvml_stub.gpus(1)
    nvml_stub.set(uuid, used_bytes=used_mib * MIB, reserved_bytes=600 * MIB)
    assert outside_use(start_probe(nvml_stub).devices()[uuid]) is None


def test_a_card_with_a_resident_process_is_not_free_at_no_utilisation(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    """Case 18."""
    (uuid,) = nvml_stub.gpus(1)
    nvml_stub.set(uuid, used_bytes=3 * MIB, util_pct=0, processes=[(4242, None)])
    device = start_probe(nvml_stub).devices()[uuid]
    assert "process 4242" in str(outside_use(device))


def test_memory_in_use_by_nobody_that_is_shown_is_use(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    (uuid,) = nvml_stub.gpus(1)
    nvml_stub.set(uuid, used_bytes=GIB)
    assert "1024 MiB" in str(outside_use(start_probe(nvml_stub).devices()[uuid]))


def test_missing_figures_are_never_read_as_idle(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    """Case 8."""
    hidden, lost = nvml_stub.gpus(2)
    processes = "nvmlDeviceGetComputeRunningProcesses"
    names = [
        *("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2"),
        *(f"{processes}_v2", f"{processes}_v3"),
    ]
    nvml_stub.set(hidden, errors=dict.fromkeys(names, Code.UNKNOWN))
    probe = start_probe(nvml_stub)
    probe.read()
    nvml_stub.lose(lost)
    devices = probe.devices()
    assert outside_use(devices[hidden]) is not None
    assert outside_use(devices[lost]) is not None


def test_a_simulated_card_is_never_in_use_outside() -> None:
    (device,) = SimulatedSource(Simulation.parse("1xT4")).read().devices
    assert outside_use(device) is None
    real = msgspec.structs.replace(
        device, simulated=False, memory_used_bytes=Reading(reason=NotAvailable.NOT_READ)
    )
    assert outside_use(real) is not None
