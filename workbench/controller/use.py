"""Turns samples into what the core is told of a lease's use: that it fell, and that it rose again.

What cannot be read counts neither as use nor as idleness: a window that was not mostly seen says
nothing. Nothing is told of leases without GPUs, of simulated GPUs, and of those that share one,
since a GPU's use is that of all who share it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from workbench.controller.driver import Fact
from workbench.core.events import UseFell, UseRose
from workbench.core.job import Job
from workbench.core.model import DeviceId, JobState, LeaseId
from workbench.core.state import State
from workbench.core.use import FELL_BELOW, REPORT_S, ROSE_ABOVE, WINDOW_S
from workbench.protocol.telemetry import DeviceSample, Sample, SampleStatus

SEEN_PART: Final = 0.8
"""So much of the window must have been seen."""
STANDS_FOR_S: Final = 5.0
"""A sample speaks for the time since the one before, and for this much at most."""


@dataclass(slots=True, kw_only=True)
class _Window:
    """What was seen of a lease over the last `WINDOW_S`.

    Attributes:
        begin_s: Since when it is looked at; times are those of the samples.
        latest_s: When it was looked at last.
        told_s: When the core was last told of it; None for never.
        spans: End, length and use of each span that was seen, the oldest first.
    """

    begin_s: float
    latest_s: float
    told_s: float | None = None
    spans: deque[tuple[float, float, float]] = field(default_factory=deque)

    def add(self, at_s: float, part: float | None) -> None:
        """Take in a sample; None is not known."""
        span_s = min(at_s - self.latest_s, STANDS_FOR_S)
        self.latest_s = at_s
        if part is not None:
            self.spans.append((at_s, span_s, part))
        while self.spans and self.spans[0][0] <= at_s - WINDOW_S:
            self.spans.popleft()

    def mean(self) -> float | None:
        """Return the mean use, from 0 to 1; None where too little was seen."""
        if self.latest_s < self.begin_s + WINDOW_S:
            return None
        seen_s = sum(span_s for _, span_s, _ in self.spans)
        if seen_s < SEEN_PART * WINDOW_S:
            return None
        return sum(span_s * part for _, span_s, part in self.spans) / seen_s


class UseMeter:
    """Keeps a window for each lease that runs on real GPUs of its own."""

    def __init__(self) -> None:
        self._windows: dict[LeaseId, _Window] = {}

    def changes(self, state: State, sample: Sample) -> Iterator[Fact]:
        """Yield what the core does not know yet of the use of leases; each sample is given once."""
        at_s = sample.at_unix_s
        devices = {device.uuid: device for device in sample.devices}
        windows, self._windows = self._windows, {}
        for lease, job_id in state.leases.items():
            job = state.jobs[job_id]
            gpus = _own_gpus(state, job)
            if not gpus:
                continue
            window = windows.get(lease)
            if window is None or at_s < window.latest_s:  # A new lease, or the clock was set back.
                window = _Window(begin_s=at_s, latest_s=at_s)
            self._windows[lease] = window
            window.add(at_s, _part(devices, gpus))
            if window.told_s is None or at_s >= window.told_s + REPORT_S:
                yield from _change(lease, job, window)


def _own_gpus(state: State, job: Job) -> tuple[DeviceId, ...]:
    """Return the GPUs whose use is that of a running job alone; none where there are others."""
    if job.grant is None or job.state is not JobState.RUNNING or job.grant.units.share_bytes:
        return ()
    gpus = job.grant.units.gpus
    return () if any(state.devices[gpu].simulated for gpu in gpus) else gpus


def _part(devices: dict[str, DeviceSample], gpus: tuple[DeviceId, ...]) -> float | None:
    """Return the mean use of all GPUs of a lease now, from 0 to 1; None where one is not known."""
    total = 0.0
    for gpu in gpus:
        device = devices.get(gpu)
        if device is None or device.status is not SampleStatus.OK:
            return None
        if device.util_pct.value is None:
            return None
        total += min(max(device.util_pct.value / 100.0, 0.0), 1.0)
    return total / len(gpus)


def _change(lease: LeaseId, job: Job, window: _Window) -> Iterator[Fact]:
    """Yield a crossing of a threshold; which is next the core knows, after a restart too."""
    part = window.mean()
    if part is None:
        return
    is_low = job.use is not None and job.use.low_since is not None
    if not is_low and part < FELL_BELOW:
        window.told_s = window.latest_s
        yield partial(UseFell, lease=lease, part=part)
    elif is_low and part > ROSE_ABOVE:
        window.told_s = window.latest_s
        yield partial(UseRose, lease=lease, part=part)
