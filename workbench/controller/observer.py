"""Turns samples into facts for the core, on change only, and keeps the latest sample."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from workbench.controller.driver import Driver, Fact
from workbench.controller.use import UseMeter
from workbench.core.events import (
    DeviceBusyOutside,
    DeviceLost,
    DeviceSeen,
    DispatchHeld,
    DispatchResumed,
    HostSeen,
)
from workbench.core.model import DeviceId, DeviceStatus
from workbench.core.state import Device, State
from workbench.devices.occupancy import can_be_leased, outside_use
from workbench.protocol.telemetry import (
    DeviceSample,
    NvmlState,
    NvmlStatus,
    Sample,
    SampleStatus,
)

_READABLE: Final = frozenset({NvmlStatus.OK, NvmlStatus.NOT_IN_USE})
_LOST: Final = {
    SampleStatus.LOST: "the driver says that it has fallen off the bus",
    SampleStatus.UNREADABLE: "the driver refuses to speak about it",
    SampleStatus.MISSING: "the driver no longer lists it",
}


class Observer:
    """Watches the samples.

    Args:
        driver: Told what has changed.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._held_for: NvmlStatus | None = None
        self._meter = UseMeter()
        self.latest: Sample | None = None
        """The newest sample; None before the first."""

    def on_sample(self, sample: Sample) -> None:
        """Tell the core what this sample shows that it does not know yet.

        While the journal cannot be written nothing is told: the first sample after that does.
        """
        self.latest = sample
        if self._driver.trouble is not None:
            return
        state = self._driver.state
        facts = [
            *host_changes(state, sample),
            *device_changes(state, sample),
            *self._dispatch_changes(state, sample),
            *self._meter.changes(state, sample),
        ]
        for fact in facts:
            self._driver.note(fact)

    def notices(self) -> list[str]:
        """Return sentences on the devices that everybody should know."""
        if self.latest is None:
            return []
        return [
            f"GPU {device.uuid} is split into MIG slices and is not handed out"
            for device in self.latest.devices
            if device.mig_enabled
        ]

    def _dispatch_changes(self, state: State, sample: Sample) -> Iterator[Fact]:
        """Hold dispatch while NVML cannot be read and there are GPUs that it spoke of before."""
        nvml: NvmlState = sample.nvml
        if nvml.state in _READABLE or not _knows_real_gpus(state):
            self._held_for = None
            if state.held is not None:
                yield DispatchResumed
        elif state.held is None or self._held_for is not nvml.state:
            self._held_for = nvml.state
            yield partial(DispatchHeld, reason=nvml.message or f"NVML: {nvml.state}")


def host_changes(state: State, sample: Sample) -> Iterator[Fact]:
    """Yield what the core does not know yet of cores and memory; what cannot be read says nothing.

    A simulated lab has a core for each of its GPUs, so that its queue moves as a lab's does.
    """
    cores, memory = sample.host.cores_usable.value, sample.host.memory_total_bytes.value
    if cores is None or memory is None:
        return
    simulated = sum(device.simulated for device in sample.devices)
    whole = max(1, int(cores), simulated)
    if state.host is None or (state.host.cores, state.host.memory_bytes) != (whole, memory):
        yield partial(HostSeen, cores=whole, memory_bytes=int(memory))


def device_changes(state: State, sample: Sample) -> Iterator[Fact]:
    """Yield what the core does not know yet of the GPUs."""
    seen = set()
    for device in sample.devices:
        seen.add(device.uuid)
        yield from _changes_of(state, device)
    for known in state.devices.values():
        if known.id in seen or known.status is DeviceStatus.MISSING:
            continue
        if known.simulated or sample.nvml.state in _READABLE:
            yield partial(
                DeviceLost,
                device=known.id,
                missing=True,
                reason="not simulated any more" if known.simulated else "no longer there",
            )


def _changes_of(state: State, device: DeviceSample) -> Iterator[Fact]:
    identity = DeviceId(device.uuid)
    known = state.devices.get(identity)
    if not can_be_leased(device):
        if known is not None and known.status in {
            DeviceStatus.AVAILABLE,
            DeviceStatus.BUSY_OUTSIDE,
        }:
            yield from _loss(device, known)
        return
    # What runs on a leased GPU is the lease's business.
    is_leased = identity in state.holders or identity in state.sharers
    use = None if is_leased else outside_use(device)
    memory = device.memory_total_bytes.value
    seen = partial(
        DeviceSeen,
        device=identity,
        model=device.name,
        memory_bytes=None if memory is None else int(memory),
        simulated=device.simulated,
        busy_outside=use,
    )
    if known is None or known.status in {DeviceStatus.LOST, DeviceStatus.MISSING}:
        yield seen
    elif use is not None and known.status is DeviceStatus.AVAILABLE:
        yield partial(DeviceBusyOutside, device=identity, reason=use)
    elif use is None and known.status is DeviceStatus.BUSY_OUTSIDE:
        yield seen


def _loss(device: DeviceSample, known: Device) -> Iterator[Fact]:
    if device.mig_enabled:
        yield partial(
            DeviceLost, device=known.id, missing=True, reason="it is split into MIG slices now"
        )
    elif device.status in _LOST:
        yield partial(
            DeviceLost,
            device=known.id,
            missing=device.status is SampleStatus.MISSING,
            reason=_LOST[device.status],
        )


def _knows_real_gpus(state: State) -> bool:
    return any(
        not device.simulated and device.status is not DeviceStatus.MISSING
        for device in state.devices.values()
    )
