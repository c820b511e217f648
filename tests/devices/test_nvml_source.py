"""GPUs over time: failures of the library, lost and missing cards, stale figures."""

from __future__ import annotations

import pytest

from tests.devices.conftest import ProbeStarter
from tests.stand_ins.world import MIB, Code, StubWorld
from workbench.protocol.telemetry import NotAvailable, NvmlStatus, Reading, SampleStatus

INIT_FAILURES = {
    Code.LIBRARY_NOT_FOUND: NvmlStatus.NO_LIBRARY,
    Code.DRIVER_NOT_LOADED: NvmlStatus.DRIVER_NOT_LOADED,
    Code.LIB_RM_VERSION_MISMATCH: NvmlStatus.VERSION_MISMATCH,
    Code.UNKNOWN: NvmlStatus.UNKNOWN,
    Code.NO_PERMISSION: NvmlStatus.NO_PERMISSION,
}


@pytest.mark.parametrize(("code", "status"), INIT_FAILURES.items())
def test_each_way_of_having_no_driver_is_named_logged_once_and_tried_again(
    nvml_stub: StubWorld, start_probe: ProbeStarter, code: Code, status: NvmlStatus
) -> None:
    """Case 1, jupyterlab-nvdashboard#69."""
    nvml_stub.gpus(1)
    nvml_stub.fail("nvmlInitWithFlags", code)
    probe = start_probe(nvml_stub)
    readings = [probe.read() for _ in range(4)]
    for reading in readings:
        assert reading.devices == ()
        assert reading.nvml is not None
        assert reading.nvml.state is status
        assert reading.nvml.message
        assert reading.nvml.next_step
    nvml_stub.heal()
    recovered = probe.read(after_s=60)
    assert recovered.nvml is not None
    assert recovered.nvml.state is NvmlStatus.OK
    assert len(recovered.devices) == 1
    first, second = probe.log_lines()
    assert readings[0].nvml
    assert readings[0].nvml.message in first
    assert second == "NVML: ok"


def test_a_machine_without_the_library_says_so(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    probe = start_probe(nvml_stub, LD_LIBRARY_PATH="/nonexistent")
    reading = probe.read()
    assert reading.nvml is not None
    assert reading.nvml.state is NvmlStatus.NO_LIBRARY


def test_attempts_grow_rarer(nvml_stub: StubWorld, start_probe: ProbeStarter) -> None:
    nvml_stub.gpus(1)
    nvml_stub.fail("nvmlInitWithFlags", Code.DRIVER_NOT_LOADED)
    probe = start_probe(nvml_stub)
    probe.read()
    probe.read(after_s=1.0)
    nvml_stub.heal()
    too_early, due = probe.read(after_s=1.5), probe.read(after_s=0.5)
    assert too_early.nvml
    assert too_early.nvml.state is NvmlStatus.DRIVER_NOT_LOADED
    assert due.nvml
    assert due.nvml.state is NvmlStatus.OK


def test_after_a_driver_upgrade_the_last_good_figures_are_shown_with_their_age(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    """Case 2, lyulyul/shine-cluster#30."""
    uuid, _ = nvml_stub.gpus(2)
    nvml_stub.set(uuid, used_bytes=7 * MIB)
    probe = start_probe(nvml_stub)
    good = probe.devices()[uuid]
    nvml_stub.fail("*", Code.LIB_RM_VERSION_MISMATCH)
    for age_s in (30.0, 60.0, 90.0):
        reading = probe.read(after_s=30)
        assert reading.nvml
        assert reading.nvml.state is NvmlStatus.VERSION_MISMATCH
        assert "driver mismatch, reboot needed" in reading.nvml.message
        assert [d.status for d in reading.devices] == [SampleStatus.STALE] * 2
        assert reading.devices[0].stale_age_s == age_s
        assert reading.devices[0].memory_used_bytes == good.memory_used_bytes
    nvml_stub.heal()
    assert probe.devices(after_s=60)[uuid] == good


def test_one_lost_card_leaves_the_others_alone(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    """Case 4, gpustat#125."""
    uuids = nvml_stub.gpus(4)
    probe = start_probe(nvml_stub)
    assert list(probe.devices()) == uuids
    nvml_stub.lose(uuids[1])
    for _ in range(2):
        devices = probe.devices()
        assert list(devices) == uuids
        assert devices[uuids[1]].status is SampleStatus.LOST
        assert devices[uuids[1]].name == "NVIDIA A100-SXM4-80GB"
        assert devices[uuids[1]].util_pct == Reading(reason=NotAvailable.LOST)
        healthy = [devices[u] for n, u in enumerate(uuids) if n != 1]
        assert all(d.status is SampleStatus.OK for d in healthy)
        assert [d.index for d in healthy] == [0, 2, 3]
    nvml_stub.heal()
    assert probe.devices()[uuids[1]].status is SampleStatus.OK
    assert [line for line in probe.log_lines() if uuids[1] in line] == [
        f"GPU {uuids[1]} (NVIDIA A100-SXM4-80GB): lost, was ok",
        f"GPU {uuids[1]} (NVIDIA A100-SXM4-80GB): ok, was lost",
    ]


def test_a_card_lost_before_it_was_ever_read_is_still_counted(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    """Case 4."""
    uuids = nvml_stub.gpus(4)
    nvml_stub.lose(uuids[1])
    probe = start_probe(nvml_stub)
    devices = probe.devices()
    assert list(devices) == [uuids[0], uuids[2], uuids[3], "unknown:1"]
    assert devices["unknown:1"].status is SampleStatus.LOST
    nvml_stub.heal()
    assert set(probe.devices()) == set(uuids)


def test_a_card_that_is_lost_for_one_query_alone_is_lost(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    (uuid,) = nvml_stub.gpus(1)
    nvml_stub.set(uuid, errors={"nvmlDeviceGetUtilizationRates": Code.GPU_IS_LOST})
    assert start_probe(nvml_stub).devices()[uuid].status is SampleStatus.LOST


def test_a_card_that_one_may_not_open_is_unreadable_and_not_lost(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    uuids = nvml_stub.gpus(2)
    nvml_stub.set(uuids[0], errors={"*": Code.NO_PERMISSION})
    devices = start_probe(nvml_stub).devices()
    assert devices["unknown:0"].status is SampleStatus.UNREADABLE
    assert devices["unknown:0"].util_pct == Reading(reason=NotAvailable.NO_PERMISSION)
    assert devices[uuids[1]].status is SampleStatus.OK


def test_a_card_that_is_no_longer_counted_is_missing_and_nothing_is_renumbered(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    """Case 7, microsoft/pai#4344."""
    uuids = nvml_stub.gpus(4)
    for n, uuid in enumerate(uuids):
        nvml_stub.set(uuid, used_bytes=n * MIB)
    probe = start_probe(nvml_stub)
    probe.read()
    nvml_stub.set(uuids[1], hidden=True)
    devices = probe.devices()
    assert list(devices) == uuids
    assert devices[uuids[1]].status is SampleStatus.MISSING
    assert devices[uuids[1]].index is None
    assert devices[uuids[1]].memory_used_bytes == Reading(reason=NotAvailable.MISSING)
    for n in (0, 2, 3):
        assert devices[uuids[n]].status is SampleStatus.OK
        assert devices[uuids[n]].memory_used_bytes == Reading(n * MIB)
    nvml_stub.set(uuids[1], hidden=False)
    assert probe.devices()[uuids[1]].status is SampleStatus.OK


def test_a_missing_card_stays_missing_when_the_library_fails_afterwards(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    uuids = nvml_stub.gpus(2)
    probe = start_probe(nvml_stub)
    probe.read()
    nvml_stub.set(uuids[0], hidden=True)
    probe.read()
    nvml_stub.fail("*", Code.UNKNOWN)
    assert [d.status for d in probe.read().devices] == [SampleStatus.MISSING, SampleStatus.STALE]


def test_slices_of_a_lost_card_are_lost_with_it(
    nvml_stub: StubWorld, start_probe: ProbeStarter
) -> None:
    (uuid,) = nvml_stub.gpus(1)
    part = "MIG-00000000-0000-0000-0000-000000000001"
    nvml_stub.set(uuid, mig=True, slices=[(part, 10 * MIB, MIB)])
    probe = start_probe(nvml_stub)
    assert probe.devices()[part].status is SampleStatus.OK
    nvml_stub.lose(uuid)
    assert probe.devices()[part].status is SampleStatus.LOST
