"""What a sample tells the core, as facts: changes only."""

from __future__ import annotations

from dataclasses import replace

from workbench.controller.observer import device_changes, host_changes
from workbench.core.events import DeviceBusyOutside, DeviceLost, DeviceSeen, Event, HostSeen
from workbench.core.model import DeviceId, DeviceStatus, LeaseId
from workbench.core.state import Device, Host, Sharer, State
from workbench.protocol.telemetry import (
    DeviceSample,
    HostSample,
    NotAvailable,
    NvmlState,
    NvmlStatus,
    ProcessSample,
    Reading,
    Sample,
    SampleStatus,
)

GIB = 2**30
NOTHING = Reading(reason=NotAvailable.NOT_SUPPORTED)


def card(
    uuid: str = "GPU-a",
    *,
    used_bytes: int = 0,
    processes: tuple[ProcessSample, ...] = (),
    status: SampleStatus = SampleStatus.OK,
    simulated: bool = False,
    mig_enabled: bool = False,
    parent_uuid: str | None = None,
) -> DeviceSample:
    return DeviceSample(
        uuid=uuid,
        index=0,
        name="A100",
        memory_total_bytes=Reading(80 * GIB),
        memory_used_bytes=Reading(used_bytes),
        util_pct=NOTHING,
        processes=processes,
        status=status,
        simulated=simulated,
        mig_enabled=mig_enabled,
        parent_uuid=parent_uuid,
    )


def sample(*devices: DeviceSample, nvml: NvmlStatus = NvmlStatus.OK, cores: float = 8) -> Sample:
    host = HostSample(
        hostname="host",
        cpu_util_pct=NOTHING,
        cores_usable=Reading(cores),
        cores_total=Reading(16),
        memory_total_bytes=Reading(64 * GIB),
        memory_available_bytes=NOTHING,
    )
    return Sample(at_unix_s=1.0, host=host, devices=devices, nvml=NvmlState(state=nvml))


def known(
    uuid: str = "GPU-a",
    *,
    status: DeviceStatus = DeviceStatus.AVAILABLE,
    simulated: bool = False,
    holder: str | None = None,
) -> State:
    device = Device(
        id=DeviceId(uuid),
        model="A100",
        memory_bytes=80 * GIB,
        simulated=simulated,
        status=status,
        reason="",
    )
    holders = {device.id: LeaseId(holder)} if holder else {}
    return State(devices={device.id: device}, holders=holders)


def told(state: State, seen: Sample) -> list[Event]:
    return [fact(at=0.0) for fact in device_changes(state, seen)]


def seen_anew(busy_outside: str | None = None) -> DeviceSeen:
    return DeviceSeen(
        at=0.0,
        device=DeviceId("GPU-a"),
        model="A100",
        memory_bytes=80 * GIB,
        simulated=False,
        busy_outside=busy_outside,
    )


PROCESS = ProcessSample(pid=7, used_bytes=Reading(GIB), owner_uid=Reading(1234))
BUSY = "in use outside Workbench by process 7 of user id 1234"


def test_a_new_gpu_is_told_once() -> None:
    assert told(State(), sample(card())) == [seen_anew()]
    assert told(known(), sample(card())) == []


def test_a_gpu_that_is_in_use_when_first_seen_is_never_free_in_between() -> None:
    assert told(State(), sample(card(processes=(PROCESS,)))) == [seen_anew(BUSY)]


def test_use_from_outside_is_told_when_it_begins_and_when_it_ends() -> None:
    busy = DeviceBusyOutside(at=0.0, device=DeviceId("GPU-a"), reason=BUSY)
    assert told(known(), sample(card(processes=(PROCESS,)))) == [busy]
    outside = known(status=DeviceStatus.BUSY_OUTSIDE)
    assert told(outside, sample(card(processes=(PROCESS,)))) == []
    assert told(outside, sample(card())) == [seen_anew()]


def test_an_idle_gpu_that_holds_a_few_mebibytes_is_free() -> None:
    """local-inference-lab/blackwell-llm-docker PR#44."""
    for mebibytes in (2, 3, 32):
        assert told(known(), sample(card(used_bytes=mebibytes * 2**20))) == []
    assert len(told(known(), sample(card(used_bytes=GIB)))) == 1


def test_what_runs_on_a_leased_gpu_is_not_use_from_outside() -> None:
    assert told(known(holder="L1"), sample(card(processes=(PROCESS,)))) == []
    shared = replace(known(), sharers={DeviceId("GPU-a"): (Sharer(LeaseId("L1"), GIB),)})
    assert told(shared, sample(card(processes=(PROCESS,)))) == []


def test_a_lost_unreadable_or_missing_gpu_is_told_once() -> None:
    for status in (SampleStatus.LOST, SampleStatus.UNREADABLE, SampleStatus.MISSING):
        [event] = told(known(), sample(card(status=status)))
        assert isinstance(event, DeviceLost)
        assert event.missing == (status is SampleStatus.MISSING)
        assert told(known(status=DeviceStatus.LOST), sample(card(status=status))) == []
        assert told(State(), sample(card("unknown:0", status=status))) == []
    assert told(known(status=DeviceStatus.LOST), sample(card())) == [seen_anew()]


def test_a_stale_sample_says_nothing() -> None:
    assert told(known(), sample(card(status=SampleStatus.STALE, processes=(PROCESS,)))) == []


def test_a_gpu_that_is_split_is_not_handed_out_whole_and_its_slices_not_yet() -> None:
    split = card(mig_enabled=True)
    part = card("MIG-a", parent_uuid="GPU-a")
    assert told(State(), sample(split, part)) == []
    [event] = told(known(), sample(split, part))
    assert isinstance(event, DeviceLost)
    assert event.missing


def test_a_gpu_that_is_not_listed_is_missing_unless_the_driver_cannot_be_read() -> None:
    [event] = told(known(), sample())
    assert isinstance(event, DeviceLost)
    assert event.missing
    for nvml in (NvmlStatus.VERSION_MISMATCH, NvmlStatus.NOT_ANSWERING, NvmlStatus.NOT_READ):
        assert told(known(), sample(nvml=nvml)) == []
    assert told(known(status=DeviceStatus.MISSING), sample()) == []
    assert len(told(known(simulated=True), sample(nvml=NvmlStatus.NO_LIBRARY))) == 1


def test_cores_are_whole_and_at_least_one_for_each_simulated_gpu() -> None:
    def cores(seen: Sample, state: State | None = None) -> list[Event]:
        return [fact(at=0.0) for fact in host_changes(state or State(), seen)]

    def host(count: int) -> HostSeen:
        return HostSeen(at=0.0, cores=count, memory_bytes=64 * GIB)

    assert cores(sample(cores=2.5)) == [host(2)]
    assert cores(sample(cores=0.5)) == [host(1)]
    simulated = [card(f"SIM-{number}", simulated=True) for number in range(4)]
    assert cores(sample(*simulated, cores=2)) == [host(4)]
    assert cores(sample(*simulated, cores=8)) == [host(8)]
    assert cores(sample(), State(host=Host(cores=8, memory_bytes=64 * GIB))) == []
