"""Ends leases: at once without a GPU, and with one when the GPU's memory is seen to be gone.

The controller's own sample decides, not the agent's word. Where memory cannot be seen, or is still
there after a bounded time, the lease ends all the same and says so; a GPU that is still in use is
marked busy first, so that nobody is given it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from workbench.controller.driver import Driver, Fact
from workbench.controller.log import LOG
from workbench.core.events import DeviceBusyOutside, LeaseEnded
from workbench.core.model import DeviceId, LeaseId, Outcome
from workbench.devices.occupancy import outside_use
from workbench.protocol.telemetry import DeviceSample, Sample, SampleStatus

PATIENCE_S: Final = 10.0
NOT_SEEN: Final = "its GPU memory was not seen to be gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A lease whose tree is gone and whose GPU memory may not be."""

    outcome: Outcome
    detail: str
    gpus: tuple[DeviceId, ...]
    asked_unix_s: float
    given_up: asyncio.TimerHandle
    done: asyncio.Future[None]

    @property
    def is_ending(self) -> bool:
        """Whether the core is being told already."""
        return self.given_up.cancelled()


class Releases:
    """Knows the leases that are over but for their GPU memory.

    Args:
        driver: Told the ends of leases.
        latest: Returns the newest sample.
        patience_s: How long memory may take to go.
    """

    def __init__(
        self,
        driver: Driver,
        *,
        latest: Callable[[], Sample | None],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._driver = driver
        self._latest = latest
        self._patience_s = patience_s
        self._pending: dict[LeaseId, _Pending] = {}
        self._loop = asyncio.get_running_loop()

    def release(self, lease: LeaseId, outcome: Outcome, detail: str) -> asyncio.Future[None]:
        """End a live lease as soon as its units are free. Safe to repeat.

        Returns:
            Done when the end is in the journal. Cancelling it cancels nothing else.
        """
        pending = self._pending.get(lease)
        if pending is None:
            gpus = self._real_gpus(lease)
            pending = _Pending(
                outcome=outcome,
                detail=detail,
                gpus=gpus,
                asked_unix_s=time.time(),
                given_up=self._loop.call_later(self._patience_s, self._give_up, lease),
                done=self._loop.create_future(),
            )
            self._pending[lease] = pending
            if not gpus:
                self._end(lease, pending, [])
        return asyncio.shield(pending.done)

    def on_sample(self, sample: Sample) -> None:
        """End the leases whose memory is gone in a sample taken after their tree was gone."""
        devices = {device.uuid: device for device in sample.devices}
        for lease, pending in list(self._pending.items()):
            if (
                not pending.is_ending
                and sample.at_unix_s > pending.asked_unix_s
                and all(
                    self._is_shared(lease, gpu) or _is_seen_free(devices.get(gpu))
                    for gpu in pending.gpus
                )
            ):
                self._end(lease, pending, [])

    def close(self) -> None:
        """Give up what is pending: agents report it again when they connect."""
        for pending in self._pending.values():
            pending.given_up.cancel()
            pending.done.cancel()
        self._pending.clear()

    def _real_gpus(self, lease: LeaseId) -> tuple[DeviceId, ...]:
        state = self._driver.state
        grant = state.jobs[state.leases[lease]].grant
        gpus = grant.units.gpus if grant is not None else ()
        return tuple(gpu for gpu in gpus if not state.devices[gpu].simulated)

    def _is_shared(self, lease: LeaseId, gpu: DeviceId) -> bool:
        """Whether what is seen on a GPU may be another lease's: whose memory it is is not seen."""
        sharers = self._driver.state.sharers.get(gpu, ())
        return any(sharer.lease != lease for sharer in sharers)

    def _give_up(self, lease: LeaseId) -> None:
        pending = self._pending[lease]
        sample = self._latest()
        devices = {device.uuid: device for device in sample.devices} if sample is not None else {}
        busy: list[Fact] = []
        for gpu in pending.gpus:
            if self._is_shared(lease, gpu):
                continue
            device = devices.get(gpu)
            use = outside_use(device) if device is not None and _is_read(device) else None
            if use is not None:
                busy.append(partial(DeviceBusyOutside, device=gpu, reason=use))
        LOG.warning("lease %s: %s after %.0f s", lease, NOT_SEEN, self._patience_s)
        detail = f"{pending.detail}; {NOT_SEEN}" if pending.detail else NOT_SEEN
        self._end(lease, pending, busy, detail=detail)

    def _end(
        self, lease: LeaseId, pending: _Pending, first: list[Fact], *, detail: str | None = None
    ) -> None:
        pending.given_up.cancel()
        for fact in first:
            self._driver.note(fact)
        ended = self._driver.note(
            partial(
                LeaseEnded,
                lease=lease,
                outcome=pending.outcome,
                detail=pending.detail if detail is None else detail,
            )
        )
        ended.add_done_callback(lambda _: self._forget(lease))

    def _forget(self, lease: LeaseId) -> None:
        pending = self._pending.pop(lease, None)
        if pending is not None and not pending.done.done():
            pending.done.set_result(None)


def _is_read(device: DeviceSample) -> bool:
    return device.status is SampleStatus.OK


def _is_seen_free(device: DeviceSample | None) -> bool:
    return device is not None and _is_read(device) and outside_use(device) is None
