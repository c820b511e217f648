"""NVML through the real nvidia-ml-py on the stand-in library: one reading at a time."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.devices.conftest import ProbeStarter
from tests.stand_ins.build import build
from tests.stand_ins.world import GIB, MIB, Code, StubWorld
from workbench.devices.occupancy import can_be_leased
from workbench.protocol.telemetry import NotAvailable, NvmlStatus, Reading, SampleStatus


def test_a_healthy_card_is_read_whole(nvml_stub: StubWorld, start_probe: ProbeStarter) -> None:
    (uuid,) = nvml_stub.gpus(1)
    nvml_stub.set(uuid, util_pct=37, used_bytes=5 * GIB, reserved_bytes=500 * MIB)
    reading = start_probe(nvml_stub).read()
    (device,) = reading.devices
    assert reading.nvml is not None
    assert reading.nvml.state is NvmlStatus.OK
    assert (device.uuid, device.index, device.name) == (uuid, 0, "NVIDIA A100-SXM4-80GB")
    assert device.memory_total_bytes == Reading(80 * GIB)
    assert device.memory_used_bytes == Reading(5 * GIB), "without what the driver keeps"
    assert device.util_pct == Reading(37)
    assert device.processes_reason is None
    assert not device.simulated
    assert can_be_leased(device)


def test_an_older_driver_without_the_newer_queries_is_read_all_the_same(
    tmp_path: Path, start_probe: ProbeStarter
) -> None:
    missing = ["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3"]
    world = StubWorld(build(tmp_path / "old driver", omit=missing), tmp_path / "script")
    (uuid,) = world.gpus(1)
    world.set(uuid, used_bytes=GIB, processes=[(4242, GIB)])
    device = start_probe(world).devices()[uuid]
    assert device.memory_used_bytes == Reading(GIB)
    assert [p.pid for p in device.processes] == [4242]


def test_without_any_process_query_attribution_is_unavailable(
    tmp_path: Path, start_probe: ProbeStarter
) -> None:
    missing = [f"nvmlDeviceGetComputeRunningProcesses_v{n}" for n in (2, 3)]
    world = StubWorld(build(tmp_path / "old driver", omit=missing), tmp_path / "script")
    (uuid,) = world.gpus(1)
    device = start_probe(world).devices()[uuid]
    assert device.processes == ()
    assert device.processes_reason is NotAvailable.FUNCTION_NOT_FOUND
    assert device.util_pct == Reading(0)


@pytest.mark.parametrize("code", [Code.NOT_SUPPORTED, Code.UNKNOWN])
def test_utilisation_that_cannot_be_read_is_null_and_never_zero(
    nvml_stub: StubWorld, start_probe: ProbeStarter, code: Code
) -> None:
    """Case 8, dask/distributed#5342."""
    uuid, other = nvml_stub.gpus(2)
    nvml_stub.set(uuid, errors={"nvmlDeviceGetUtilizationRates": code}, used_bytes=3 * MIB)
    probe = start_probe(nvml_stub)
    devices = probe.devices()
    assert devices[uuid].util_pct.value is None
    assert devices[uuid].util_pct.reason in {
        NotAvailable.NOT_SUPPORTED,
        NotAvailable.UNKNOWN_ERROR,
    }
    assert devices[uuid].memory_used_bytes == Reading(3 * MIB)
    assert devices[uuid].status is SampleStatus.OK
    assert devices[other].util_pct == Reading(0)
    probe.read()
    assert probe.log_lines() == ["NVML: ok"]


def test_only_devices_known_to_share_the_hosts_memory_are_called_unified(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    """Case 9, gpustat PR#179."""
    spark, discrete = nvml_stub.gpus(2)
    refused = {
        "nvmlDeviceGetMemoryInfo": Code.NOT_SUPPORTED,
        "nvmlDeviceGetMemoryInfo_v2": Code.NOT_SUPPORTED,
    }
    nvml_stub.set(spark, name="NVIDIA GB10", errors=refused, processes=[(4242, 43 * MIB)])
    nvml_stub.set(discrete, errors=refused)
    devices = start_probe(nvml_stub).devices()
    assert devices[spark].unified_memory
    assert devices[spark].memory_total_bytes == Reading(reason=NotAvailable.UNIFIED_MEMORY)
    assert devices[spark].processes[0].used_bytes == Reading(43 * MIB)
    assert not devices[discrete].unified_memory
    assert devices[discrete].memory_total_bytes == Reading(reason=NotAvailable.NOT_SUPPORTED)


OLD_BINDING = """
import importlib.util, sys
_spec = importlib.util.spec_from_file_location("_newest", {path!r})
_newest = importlib.util.module_from_spec(_spec)
sys.modules["_newest"] = _newest
_spec.loader.exec_module(_newest)
for _name, _value in vars(_newest).items():
    if not (_name.startswith("__") or "_v2" in _name or "_v3" in _name):
        globals()[_name] = _value

def nvmlDeviceGetName(handle):
    return _newest.nvmlDeviceGetName(handle).encode()

def nvmlDeviceGetUUID(handle):
    return _newest.nvmlDeviceGetUUID(handle).encode()

def nvmlDeviceGetMemoryInfo(handle):
    return _newest.nvmlDeviceGetMemoryInfo(handle)
"""


def test_an_old_binding_that_answers_bytes_gives_the_same_text_and_is_named_once(
    nvml_stub: StubWorld, start_probe: ProbeStarter, tmp_path: Path
) -> None:
    """Case 11, dask/distributed#5768."""
    (uuid,) = nvml_stub.gpus(1)
    binding = importlib.util.find_spec("pynvml")
    assert binding is not None
    package = tmp_path / "path" / "pynvml"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(OLD_BINDING.format(path=binding.origin))
    probe = start_probe(nvml_stub, PYTHONPATH=str(package.parent))
    plain = start_probe(nvml_stub)
    reading = probe.read()
    assert probe.read() == reading
    assert reading.devices[0] == plain.read().devices[0]
    assert reading.devices[0].uuid == uuid
    assert reading.nvml is not None
    assert reading.nvml.state is NvmlStatus.OK
    assert str(package) in reading.nvml.message
    assert "pip uninstall pynvml" in reading.nvml.next_step
    assert len([line for line in probe.log_lines() if str(package) in line]) == 1


def test_a_name_that_is_no_text_is_shown_as_far_as_it_is_one(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    """Case 11."""
    (uuid,) = nvml_stub.gpus(1, model=b"NVIDIA \xff\xfeA100")
    assert start_probe(nvml_stub).devices()[uuid].name == "NVIDIA \ufffd\ufffdA100"


def test_garbage_in_the_process_table_never_becomes_an_owner(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    """Case 13, nvitop#75."""
    uuid, sound = nvml_stub.gpus(2)
    own = os.getpid()
    nvml_stub.set(
        uuid, processes=[(own, GIB), (0, GIB), (2**32 - 1, GIB), (own + 1, 2**63), (GIB, own)]
    )
    nvml_stub.set(sound, processes=[(4242, None)])
    devices = start_probe(nvml_stub).devices()
    assert [p.pid for p in devices[uuid].processes] == [own]
    assert devices[uuid].processes[0].owner_uid == Reading(reason=NotAvailable.IMPLAUSIBLE)
    assert devices[uuid].processes_reason is NotAvailable.IMPLAUSIBLE
    (process,) = devices[sound].processes
    assert process.used_bytes == Reading(reason=NotAvailable.NOT_SUPPORTED)
    assert devices[sound].processes_reason is None


def test_a_card_in_slices_is_shown_with_them_and_never_lent_whole(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    """Case 19, jupyterlab-nvdashboard#184."""
    uuid, whole = nvml_stub.gpus(2)
    slices = [
        ("MIG-00000000-0000-0000-0000-000000000001", 10 * GIB, MIB),
        ("MIG-00000000-0000-0000-0000-000000000002", 40 * GIB, MIB),
    ]
    nvml_stub.set(uuid, mig=True, slices=slices)
    devices = start_probe(nvml_stub).devices()
    assert list(devices) == [uuid, slices[0][0], slices[1][0], whole]
    assert devices[uuid].mig_enabled
    assert not can_be_leased(devices[uuid])
    assert can_be_leased(devices[whole])
    part = devices[slices[1][0]]
    assert part.parent_uuid == uuid
    assert part.memory_total_bytes == Reading(40 * GIB)
    assert part.util_pct == Reading(reason=NotAvailable.NOT_SUPPORTED)


def test_importing_devices_loads_no_binding() -> None:
    code = (
        "import sys, workbench.devices.nvml_source, workbench.devices.sampler;"
        "sys.exit('pynvml' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
