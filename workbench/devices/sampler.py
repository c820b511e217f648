"""One sampler a host: reads all sources at a fixed pace and publishes immutable samples.

Every source has a thread of its own, since a driver call may hang for ever; the pace-maker never
waits for one that does. What a hanging source said last is shown on, with its age.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from workbench.devices.cpu import HostMeter
from workbench.devices.source import DeviceSource, SourceReading, aged
from workbench.protocol.telemetry import DeviceSample, NvmlState, NvmlStatus, Sample

log = logging.getLogger(__name__)

SHORTEST_INTERVAL_S = 0.25
STOP_WAIT_S = 2.0
"""How long `stop` waits for a source; one that hangs longer is left behind."""


class Sampler:
    """Samples the host and its devices until stopped.

    Args:
        sources: Where devices come from; their order is that of the devices in a sample.
        on_sample: Given each new sample, in the sampler's thread; must return at once.
        interval_s: Pace; below a quarter of a second it is that.
        host: Reads processor and memory.
    """

    def __init__(
        self,
        sources: Sequence[DeviceSource],
        *,
        on_sample: Callable[[Sample], object],
        interval_s: float = 1.0,
        host: HostMeter | None = None,
    ) -> None:
        self._readers = [_Reader(source) for source in sources]
        self._on_sample = on_sample
        self._interval_s = max(interval_s, SHORTEST_INTERVAL_S)
        self._host = host or HostMeter()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        """Take the first sample at once and go on in the background. Once only."""
        for reader in self._readers:
            reader.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop and close the sources. No sample is handed out after this returns."""
        self._stopping.set()
        if self._thread.ident is None:  # never started
            return
        self._thread.join()
        for reader in self._readers:
            reader.stop()
        for reader in self._readers:
            reader.join()

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stopping.wait(pause_s):
            started_s = time.monotonic()
            try:
                self._tick(started_s)
            except Exception:
                log.exception("a sample could not be taken or handed on")
            pause_s = max(0.0, started_s + self._interval_s - time.monotonic())

    def _tick(self, started_s: float) -> None:
        asked = [reader for reader in self._readers if reader.ask()]
        for reader in asked:
            reader.wait_until(started_s + self._interval_s / 2)
        devices: list[DeviceSample] = []
        nvml = NvmlState(state=NvmlStatus.NOT_IN_USE, message="no source of real GPUs")
        for reader in self._readers:
            reading = reader.current(stale_after_s=2 * self._interval_s)
            devices += reading.devices
            nvml = reading.nvml or nvml
        host = self._host.read()
        self._on_sample(Sample(at_unix_s=time.time(), host=host, devices=tuple(devices), nvml=nvml))


class _Reader:
    """Reads one source in one thread, when asked, and remembers what it said last."""

    def __init__(self, source: DeviceSource) -> None:
        self._source = source
        self._thread = threading.Thread(
            target=self._run, name=f"read {type(source).__name__}", daemon=True
        )
        self._changed = threading.Condition()
        self._asked = False
        self._stopping = False
        self._answer: SourceReading | None = None
        self._answered_s = time.monotonic()
        self._is_silent = False
        self._failure = ""

    def start(self) -> None:
        self._answered_s = time.monotonic()
        self._thread.start()

    def ask(self) -> bool:
        """Have the source read anew. False where it is still at the last reading."""
        with self._changed:
            if self._asked:
                return False
            self._asked = True
            self._changed.notify_all()
            return True

    def wait_until(self, deadline_s: float) -> None:
        """Wait for the answer, at the latest to this monotonic time."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._asked, timeout=max(0.0, deadline_s - time.monotonic())
            )

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def join(self) -> None:
        self._thread.join(STOP_WAIT_S)
        if self._thread.is_alive():
            log.warning("%s hangs in a driver call and was left behind", self._thread.name)

    def current(self, *, stale_after_s: float) -> SourceReading:
        """What the source said last; older than this it is marked stale with its age."""
        with self._changed:
            answer = self._answer
            age_s = time.monotonic() - self._answered_s
        self._tell_silence(silent=age_s > stale_after_s, age_s=age_s)
        if answer is None:
            answer = SourceReading(devices=(), nvml=NvmlState(state=NvmlStatus.NOT_READ))
        if not self._is_silent:
            return answer
        nvml = answer.nvml and NvmlState(
            state=NvmlStatus.NOT_ANSWERING,
            message=f"the NVIDIA driver has not answered for {age_s:.0f} s",
            next_step="Look for NVRM or Xid in `sudo dmesg`; a hanging driver often needs a reboot",
        )
        return SourceReading(devices=aged(answer.devices, age_s), nvml=nvml)

    def _tell_silence(self, *, silent: bool, age_s: float) -> None:
        if silent is not self._is_silent:
            self._is_silent = silent
            if silent:
                log.warning("%s: no answer for %.1f s", self._thread.name, age_s)
            else:
                log.info("%s: answers again", self._thread.name)

    def _run(self) -> None:
        while self._wait_for_work():
            answer = self._read()
            with self._changed:
                self._asked = False
                if answer is not None:
                    self._answer, self._answered_s = answer, time.monotonic()
                self._changed.notify_all()
        self._source.close()

    def _wait_for_work(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._asked or self._stopping)
            return not self._stopping

    def _read(self) -> SourceReading | None:
        try:
            answer = self._source.read()
        except Exception as error:
            if str(error) != self._failure:
                self._failure = str(error)
                log.exception("%s failed", self._thread.name)
            return None
        self._failure = ""
        return answer
