"""What samples tell of a lease's use: crossings of two thresholds, and nothing that was not seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controller.test_observer import GIB, NOTHING
from workbench.controller.use import UseMeter
from workbench.core.apply import apply
from workbench.core.decisions import Grant
from workbench.core.events import (
    AgentConnected,
    DeviceSeen,
    Event,
    HostSeen,
    JobSubmitted,
    LeaseEnded,
    LeaseStarted,
    UseFell,
    UseRose,
)
from workbench.core.model import DeviceId, JobId, LeaseId, Outcome, Request, Uid, Units
from workbench.core.state import State
from workbench.protocol.telemetry import (
    DeviceSample,
    HostSample,
    NotAvailable,
    NvmlState,
    NvmlStatus,
    Reading,
    Sample,
    SampleStatus,
)

LEASE = LeaseId("L0")
GPUS = ("GPU-a", "GPU-b")
BEGIN_S = 1_000_000.0
UNKNOWN = Reading(reason=NotAvailable.NOT_SUPPORTED)


def lab(*gpus: str, simulated: bool = False, is_started: bool = True) -> State:
    """A job that holds these GPUs."""
    state = State()
    entries: list[Any] = [HostSeen(at=0.0, cores=8, memory_bytes=GIB)]
    for gpu in gpus:
        seen = DeviceSeen(
            at=0.0, device=DeviceId(gpu), model="A100", memory_bytes=None, simulated=simulated
        )
        entries.append(seen)
    request = Request(gpus=len(gpus))
    entries += [
        AgentConnected(at=0.0, owner=Uid(1)),
        JobSubmitted(
            at=0.0, job=JobId("job"), owner=Uid(1), request=request, name="", notebook=None
        ),
        Grant(
            id=0,
            at=0.0,
            lease=LEASE,
            job=JobId("job"),
            units=Units(gpus=tuple(DeviceId(gpu) for gpu in gpus), cores=1),
            reason="",
        ),
    ]
    if is_started:
        entries.append(LeaseStarted(at=0.0, lease=LEASE))
    for entry in entries:
        apply(state, entry)
    return state


def sample(
    at_s: float, *use: float | Reading | None, status: SampleStatus = SampleStatus.OK
) -> Sample:
    """One of `GPUS` for each use in per cent; None is not listed."""
    host = HostSample(
        hostname="host",
        cpu_util_pct=NOTHING,
        cores_usable=Reading(8),
        cores_total=Reading(8),
        memory_total_bytes=Reading(GIB),
        memory_available_bytes=NOTHING,
    )
    devices = [
        DeviceSample(
            uuid=gpu,
            index=0,
            name="A100",
            memory_total_bytes=NOTHING,
            memory_used_bytes=NOTHING,
            util_pct=pct if isinstance(pct, Reading) else Reading(pct),
            status=status,
        )
        for gpu, pct in zip(GPUS, use, strict=False)
        if pct is not None
    ]
    nvml = NvmlState(state=NvmlStatus.OK)
    return Sample(at_unix_s=at_s, host=host, devices=tuple(devices), nvml=nvml)


class Watched:
    """A lab whose samples are told to the core."""

    def __init__(self, state: State) -> None:
        self.state, self.meter = state, UseMeter()
        self.at_s, self.lab_s = BEGIN_S, 0.0

    def watch(self, seconds: int, *use: float | Reading | None, **more: Any) -> list[Event]:
        """A sample each second from now on, and what came of them."""
        return list(self._watch(seconds, *use, **more))

    def _watch(self, seconds: int, *use: float | Reading | None, **more: Any) -> Iterator[Event]:
        for _ in range(seconds):
            for fact in self.meter.changes(self.state, sample(self.at_s, *use, **more)):
                event = fact(at=self.lab_s)
                apply(self.state, event)
                yield event
            self.at_s += 1.0
            self.lab_s += 1.0


def test_an_idle_gpu_is_told_once_and_not_in_the_first_five_minutes() -> None:
    lab_ = Watched(lab("GPU-a"))
    assert lab_.watch(300, 1.0) == []
    [fell] = lab_.watch(300, 1.0)
    assert fell == UseFell(at=300.0, lease=LEASE, part=pytest.approx(0.01))


def test_between_the_thresholds_nothing_is_told() -> None:
    lab_ = Watched(lab("GPU-a"))
    assert lab_.watch(900, 6.0) == []
    assert [type(one) for one in lab_.watch(900, 1.0)] == [UseFell]
    assert lab_.watch(900, 19.0) == []
    assert [type(one) for one in lab_.watch(900, 21.0)] == [UseRose]


def test_a_busy_minute_is_told_as_a_rise_and_a_busy_second_is_not() -> None:
    lab_ = Watched(lab("GPU-a"))
    lab_.watch(400, 0.0)
    assert lab_.watch(10, 100.0) == []
    assert lab_.watch(290, 0.0) == []
    [rose] = lab_.watch(70, 100.0)
    assert isinstance(rose, UseRose)
    assert 0.2 < rose.part < 0.21


def test_use_is_the_mean_over_all_gpus_of_the_lease() -> None:
    assert Watched(lab(*GPUS)).watch(600, 0.0, 20.0) == []
    [fell] = Watched(lab(*GPUS)).watch(600, 0.0, 8.0)
    assert isinstance(fell, UseFell)
    assert fell.part == pytest.approx(0.04)


@pytest.mark.parametrize("second", [UNKNOWN, None], ids=["not readable", "not listed"])
def test_what_cannot_be_read_is_not_idle(second: Reading | None) -> None:
    assert Watched(lab(*GPUS)).watch(1200, 0.0, second) == []


@pytest.mark.parametrize("status", [SampleStatus.STALE, SampleStatus.LOST], ids=str)
def test_what_was_read_before_is_not_seen_now(status: SampleStatus) -> None:
    assert Watched(lab("GPU-a")).watch(1200, 0.0, status=status) == []


def test_a_window_of_which_a_quarter_was_not_seen_says_nothing() -> None:
    lab_ = Watched(lab("GPU-a"))
    told = []
    for _ in range(40):
        told += lab_.watch(30, 0.0)
        told += lab_.watch(10, UNKNOWN)
    assert told == []
    assert len(lab_.watch(300, 0.0)) == 1


def test_samples_that_did_not_come_are_not_idle() -> None:
    lab_ = Watched(lab("GPU-a"))
    lab_.watch(200, 0.0)
    lab_.at_s += 100.0
    assert lab_.watch(100, 0.0) == []
    lab_.at_s += 5000.0
    assert lab_.watch(230, 0.0) == []
    assert len(lab_.watch(30, 0.0)) == 1


def test_a_clock_that_is_set_back_begins_the_window_anew() -> None:
    lab_ = Watched(lab("GPU-a"))
    lab_.watch(290, 0.0)
    lab_.at_s -= 3600.0
    assert lab_.watch(300, 0.0) == []
    assert len(lab_.watch(10, 0.0)) == 1


@pytest.mark.parametrize(
    "state",
    [lab(), lab("GPU-a", simulated=True), lab("GPU-a", is_started=False)],
    ids=["on cores alone", "on simulated GPUs", "not yet started"],
)
def test_of_some_leases_nothing_is_told(state: State) -> None:
    assert Watched(state).watch(1200, 0.0) == []


def test_a_lease_that_is_over_is_forgotten() -> None:
    lab_ = Watched(lab("GPU-a"))
    lab_.watch(200, 0.0)
    ended = LeaseEnded(at=201.0, lease=LEASE, outcome=Outcome.DONE, detail="")
    apply(lab_.state, ended)
    assert lab_.watch(400, 0.0) == []
    assert lab_.meter._windows == {}


def test_after_a_restart_the_window_is_new_and_what_the_core_knows_is_not_told_again() -> None:
    lab_ = Watched(lab("GPU-a"))
    assert len(lab_.watch(400, 0.0)) == 1
    lab_.meter = UseMeter()
    assert lab_.watch(400, 0.0) == []
    assert [type(one) for one in lab_.watch(200, 100.0)] == [UseRose]


def test_what_the_core_has_not_taken_yet_is_told_at_most_once_a_minute() -> None:
    lab_ = Watched(lab("GPU-a"))
    state, told = lab_.state, 0
    for second in range(500):
        told += len(list(lab_.meter.changes(state, sample(BEGIN_S + second, 0.0))))
    assert told == 4
