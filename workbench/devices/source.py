"""What a source of device samples is, and how its samples grow old."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from workbench.protocol.telemetry import DeviceSample, NvmlState, SampleStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReading:
    """All devices of one source at one moment.

    Attributes:
        devices: In an order that never changes while the source lives.
        nvml: The state of NVML; None from a source that does not use it.
    """

    devices: tuple[DeviceSample, ...]
    nvml: NvmlState | None = None


class DeviceSource(Protocol):
    """Reads devices. Both methods are only ever called from one thread."""

    def read(self) -> SourceReading:
        """Read everything now. May block; never raises for a device that cannot be read."""

    def close(self) -> None:
        """Give back what the source holds. No `read` comes after it."""


def aged(devices: Iterable[DeviceSample], age_s: float) -> tuple[DeviceSample, ...]:
    """The same devices when nothing newer could be read for `age_s` more seconds.

    A lost or missing device stays what it is: that was the last known fact about it.
    """
    return tuple(
        msgspec.structs.replace(
            device, status=SampleStatus.STALE, stale_age_s=(device.stale_age_s or 0.0) + age_s
        )
        if device.status in {SampleStatus.OK, SampleStatus.STALE} and not device.simulated
        else device
        for device in devices
    )
