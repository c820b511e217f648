from __future__ import annotations

import asyncio
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.stand_ins.world import Code, StubWorld
from workbench.devices.sampler import SHORTEST_INTERVAL_S, Sampler
from workbench.devices.simulated import SimulatedSource, Simulation
from workbench.devices.source import SourceReading
from workbench.protocol.telemetry import NotAvailable, NvmlState, NvmlStatus, Sample, SampleStatus

TWO_T4 = Simulation.parse("2xT4")


class Live:
    """A child that samples; its samples are read one by one."""

    def __init__(self, env: dict[str, str]) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-m", "tests.devices.sampler_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | env,
            cwd=Path(__file__).parents[2],
        )

    def until(self, wanted: Callable[[Sample], bool]) -> Sample:
        """The first sample from now on that is as wanted; the test's time limit ends the wait."""
        assert self.child.stdout
        while not wanted(sample := msgspec.json.decode(self.child.stdout.readline(), type=Sample)):
            pass
        return sample

    def stop(self) -> list[str]:
        """Stop it in order; what it logged."""
        _, stderr = self.child.communicate(b"")
        assert self.child.returncode == 0, stderr.decode()
        return stderr.decode().splitlines()


@pytest.fixture
def live(nvml_stub: StubWorld) -> Iterator[Live]:
    child = Live(nvml_stub.env)
    yield child
    if child.child.returncode is None:
        child.child.kill()
        child.child.communicate()


def test_a_driver_call_that_hangs_makes_the_figures_stale_and_blocks_nobody(
    nvml_stub: StubWorld, live: Live
) -> None:
    nvml_stub.gpus(2)
    good = live.until(lambda s: len(s.devices) == 2)
    nvml_stub.delay("nvmlDeviceGetUtilizationRates", 10**9)
    stale = live.until(lambda s: s.nvml.state is NvmlStatus.NOT_ANSWERING)
    assert [d.status for d in stale.devices] == [SampleStatus.STALE] * 2
    assert stale.devices[0].memory_used_bytes == good.devices[0].memory_used_bytes
    older = live.until(lambda s: s.at_unix_s > stale.at_unix_s)
    assert older.host.cpu_util_pct.value is not None, "the processor is still read"
    ages = [s.devices[0].stale_age_s for s in (stale, older)]
    assert ages[0] is not None
    assert ages[1] is not None
    assert 2 * SHORTEST_INTERVAL_S < ages[0] < ages[1]
    nvml_stub.heal()
    again = live.until(lambda s: s.nvml.state is NvmlStatus.OK)
    assert [d.status for d in again.devices] == [SampleStatus.OK] * 2
    log = live.stop()
    assert len([line for line in log if "no answer" in line]) == 1
    assert len([line for line in log if "answers again" in line]) == 1


def test_a_hanging_driver_does_not_hold_up_the_end(nvml_stub: StubWorld, live: Live) -> None:
    nvml_stub.gpus(1)
    live.until(lambda s: len(s.devices) == 1)
    nvml_stub.delay("*", 10**9)
    live.until(lambda s: s.nvml.state is NvmlStatus.NOT_ANSWERING)
    assert "left behind" in live.stop()[-1]


def test_a_driver_that_comes_late_is_found_without_a_restart(
    nvml_stub: StubWorld, live: Live
) -> None:
    """Case 1."""
    nvml_stub.gpus(1)
    nvml_stub.fail("*", Code.DRIVER_NOT_LOADED)
    live.until(lambda s: s.nvml.state is NvmlStatus.DRIVER_NOT_LOADED)
    nvml_stub.heal()
    live.until(lambda s: s.nvml.state is NvmlStatus.OK and len(s.devices) == 1)


def take(samples: queue.SimpleQueue[Sample], count: int) -> list[Sample]:
    return [samples.get() for _ in range(count)]


def test_samples_are_handed_on_as_they_come_and_none_after_the_stop() -> None:
    samples: queue.SimpleQueue[Sample] = queue.SimpleQueue()
    sampler = Sampler([SimulatedSource(TWO_T4)], on_sample=samples.put, interval_s=0.25)
    sampler.start()
    first, second = take(samples, 2)
    sampler.stop()
    handed_on = samples.qsize()
    assert first.host.cpu_util_pct.reason is NotAvailable.FIRST_SAMPLE
    assert second.host.cpu_util_pct.value is not None
    assert first.devices == second.devices
    assert first.nvml.state is NvmlStatus.NOT_IN_USE
    assert samples.qsize() == handed_on
    assert not [t for t in threading.enumerate() if "sampler" in t.name or "read " in t.name]


async def test_a_loop_receives_samples_in_its_own_thread() -> None:
    loop, received = asyncio.get_running_loop(), asyncio.Queue[tuple[Sample, int]]()

    def on_sample(sample: Sample) -> None:
        received.put_nowait((sample, threading.get_ident()))

    sampler = Sampler(
        [SimulatedSource(TWO_T4)],
        on_sample=lambda sample: loop.call_soon_threadsafe(on_sample, sample),
    )
    sampler.start()
    _, thread = await received.get()
    assert thread == threading.get_ident()
    await asyncio.to_thread(sampler.stop)


class ByThread:
    """A source that notes in which thread it is called, and fails when told to."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.closed_in = 0
        self.error: str | None = None

    def read(self) -> SourceReading:
        self.threads.append(threading.get_ident())
        if self.error:
            raise RuntimeError(self.error)
        return SourceReading(devices=(), nvml=NvmlState(state=NvmlStatus.OK))

    def close(self) -> None:
        self.closed_in = threading.get_ident()


def test_reading_and_closing_a_source_happen_in_one_thread() -> None:
    samples: queue.SimpleQueue[Sample] = queue.SimpleQueue()
    source = ByThread()
    sampler = Sampler([source], on_sample=samples.put, interval_s=0.25)
    sampler.start()
    take(samples, 2)
    sampler.stop()
    assert set(source.threads) == {source.closed_in}
    assert source.closed_in != threading.get_ident()


def test_a_source_that_fails_is_logged_once_and_goes_stale(
    caplog: pytest.LogCaptureFixture,
) -> None:
    samples: queue.SimpleQueue[Sample] = queue.SimpleQueue()
    source = ByThread()
    source.error = "broken"
    sampler = Sampler([source], on_sample=samples.put, interval_s=0.25)
    sampler.start()
    while samples.get().nvml.state is not NvmlStatus.NOT_ANSWERING:
        pass
    source.error = None
    while samples.get().nvml.state is not NvmlStatus.OK:
        pass
    sampler.stop()
    assert len([r for r in caplog.records if r.exc_info]) == 1


def test_a_receiver_that_fails_does_not_end_the_sampling(caplog: pytest.LogCaptureFixture) -> None:
    samples: queue.SimpleQueue[Sample] = queue.SimpleQueue()

    def refuse(sample: Sample) -> None:
        samples.put(sample)
        raise RuntimeError("the loop is closed")

    sampler = Sampler([], on_sample=refuse, interval_s=0.25)
    sampler.start()
    take(samples, 2)
    sampler.stop()
    assert "the loop is closed" in caplog.text


def test_a_sampler_that_never_started_can_be_stopped() -> None:
    Sampler([], on_sample=lambda _: None).stop()
