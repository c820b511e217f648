"""GPUs as NVML shows them over time: remembered by UUID, lost, missing, stale, retried."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from workbench.devices.errors import NvmlUnavailable
from workbench.devices.nvml import Card, Nvml
from workbench.devices.source import SourceReading, aged
from workbench.protocol.telemetry import (
    DeviceSample,
    NotAvailable,
    NvmlState,
    NvmlStatus,
    Reading,
    SampleStatus,
)

log = logging.getLogger(__name__)

RETRY_FIRST_S = 1.0
RETRY_MOST_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The last known sample of a device, and when it was taken (monotonic seconds)."""

    sample: DeviceSample
    at_s: float


class NvmlSource:
    """Reads all GPUs. Never raises for a driver or a device that fails.

    Args:
        monotonic: A clock in seconds.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._nvml: Nvml | None = None
        self._state = NvmlState(state=NvmlStatus.NOT_READ)
        self._retry_at_s = 0.0
        self._retry_pause_s = RETRY_FIRST_S
        self._seen: dict[str, _Seen] = {}
        self._uuid_at: dict[int, str] = {}
        self._told: dict[str, SampleStatus] = {}

    def read(self) -> SourceReading:
        """Read all GPUs; where NVML fails, the last known figures with their age."""
        now_s = self._monotonic()
        if self._nvml is None and now_s < self._retry_at_s:
            return self._remembered(now_s)
        try:
            if self._nvml is None:
                self._nvml = Nvml.open()
            cards = self._nvml.read()
        except NvmlUnavailable as failure:
            self.close()
            self._retry_at_s = now_s + self._retry_pause_s
            self._retry_pause_s = min(2 * self._retry_pause_s, RETRY_MOST_S)
            self._enter(failure.state)
            return self._remembered(now_s)
        self._retry_pause_s = RETRY_FIRST_S
        self._enter(self._nvml.state)
        return SourceReading(devices=self._merge(cards, now_s), nvml=self._state)

    def close(self) -> None:
        """Shut NVML down; a later `read` starts it again."""
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None

    def _enter(self, state: NvmlState) -> None:
        if state != self._state:
            self._state = state
            if state.state is NvmlStatus.OK:
                log.info("NVML: ok")
            else:
                log.warning("NVML: %s. %s", state.message, state.next_step)

    def _remembered(self, now_s: float) -> SourceReading:
        devices = [aged([seen.sample], now_s - seen.at_s)[0] for seen in self._seen.values()]
        return SourceReading(devices=tuple(devices), nvml=self._state)

    def _merge(self, cards: list[Card], now_s: float) -> tuple[DeviceSample, ...]:
        """Put what was read in its remembered place; nothing ever changes its key or its place."""
        read = {sample.uuid: sample for card in cards for sample in card.samples}
        nameless = []
        for card in cards:
            if card.samples:
                self._uuid_at[card.index] = card.samples[0].uuid
                continue
            uuid = self._uuid_at.get(card.index)
            if uuid is None or uuid in read:
                nameless.append(_unreadable(None, f"unknown:{card.index}", card))
                continue
            read[uuid] = _unreadable(self._seen[uuid].sample, uuid, card)
            for key, seen in self._seen.items():
                if seen.sample.parent_uuid == uuid:
                    read[key] = _unreadable(seen.sample, key, card)
        for uuid, seen in self._seen.items():
            if uuid not in read:
                read[uuid] = _without_figures(
                    seen.sample, SampleStatus.MISSING, NotAvailable.MISSING
                )
        self._seen |= {uuid: _Seen(sample=sample, at_s=now_s) for uuid, sample in read.items()}
        devices = (*(read[uuid] for uuid in self._seen), *nameless)
        self._tell_changes(devices)
        return devices

    def _tell_changes(self, devices: tuple[DeviceSample, ...]) -> None:
        for device in devices:
            was = self._told.get(device.uuid, SampleStatus.OK)
            if device.status is not was:
                log.warning("GPU %s (%s): %s, was %s", device.uuid, device.name, device.status, was)
            self._told[device.uuid] = device.status


def _unreadable(last: DeviceSample | None, uuid: str, card: Card) -> DeviceSample:
    """A card that is listed but does not answer."""
    reason = card.reason or NotAvailable.UNKNOWN_ERROR
    status = SampleStatus.LOST if reason is NotAvailable.LOST else SampleStatus.UNREADABLE
    if last is not None:
        return _without_figures(last, status, reason)
    nothing = Reading(reason=reason)
    return DeviceSample(
        uuid=uuid,
        index=card.index,
        name="unknown",
        status=status,
        memory_total_bytes=nothing,
        memory_used_bytes=nothing,
        util_pct=nothing,
        processes_reason=reason,
    )


def _without_figures(
    last: DeviceSample, status: SampleStatus, reason: NotAvailable
) -> DeviceSample:
    nothing = Reading(reason=reason)
    return msgspec.structs.replace(
        last,
        status=status,
        index=None if status is SampleStatus.MISSING else last.index,
        memory_total_bytes=nothing,
        memory_used_bytes=nothing,
        util_pct=nothing,
        processes=(),
        processes_reason=reason,
        stale_age_s=None,
    )
