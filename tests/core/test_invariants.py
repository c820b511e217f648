from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.core.builders import ALICE, GIB, Lab, gpu, seen
from workbench.core.calendar import Booking, BookingId
from workbench.core.decisions import Lower, Warn
from workbench.core.errors import BrokenInvariant
from workbench.core.events import BookingMade
from workbench.core.invariants import check
from workbench.core.job import Deadline
from workbench.core.model import DeviceId, DeviceStatus, JobId, JobState, LeaseId, Units
from workbench.core.state import State
from workbench.core.use import Progress, Use


def busy_lab() -> Lab:
    lab = Lab(gpus=3)
    lab.send(seen(0, 7, mig="1g.10gb", parent=gpu(6)))
    lab.submit("a", gpus=1, time_limit_s=10)
    lab.submit("b", gpus=1)
    lab.submit("s", gpus=1, share_bytes=20 * GIB)
    lab.submit("w", gpus=1)
    lab.submit("e")
    lab.start("a")
    lab.end("e")
    return lab


def change(job: str, **fields: object) -> Callable[[State], None]:
    def do(state: State) -> None:
        state.jobs[JobId(job)] = replace(state.jobs[JobId(job)], **fields)  # type: ignore[arg-type]

    return do


def lease_twice(state: State) -> None:
    a, b = (state.jobs[JobId(job)].grant for job in "ab")
    assert a
    assert b
    change("b", grant=replace(b, units=a.units))(state)


WARN = Warn(id=0, at=0.0, lease=LeaseId("L0"), job=JobId("a"), reason="", until=9.0)
LOWER = Lower(id=0, at=0.0, lease=LeaseId("L0"), job=JobId("a"), reason="")
BREAKS: dict[str, tuple[Callable[[State], object], str]] = {
    "a GPU is leased twice": (lease_twice, "is leased to L0 and L1"),
    "a holder is wrong": (lambda s: s.holders.pop(gpu(0)), "holders are"),
    "cores are not counted": (lambda s: setattr(s, "leased_cores", 1), "leased cores are 1"),
    "memory is not counted": (lambda s: setattr(s, "leased_memory_bytes", 1), "memory is 1"),
    "a lease is forgotten": (lambda s: s.leases.pop(LeaseId("L0")), "leases are"),
    "a deadline is forgotten": (lambda s: s.deadlines.clear(), "deadlines are"),
    "a deadline is made up": (
        lambda s: s.deadlines.append(Deadline(99, 0, JobId("a"))),
        "deadlines are",
    ),
    "a waiting job has a lease": (change("a", state=JobState.QUEUED), "queued job a has the grant"),
    "a running job never started": (change("b", state=JobState.RUNNING), "b never started"),
    "a job stops without a decision": (change("a", state=JobState.STOPPING), "has the stop None"),
    "an ended job is live": (change("w", state=JobState.ENDED), "live job w has ended"),
    "a job is misfiled": (change("w", id=JobId("x")), "job x is filed under w"),
    "a job is live and ended": (
        lambda s: s.ended.update({JobId("w"): s.jobs[JobId("w")]}),
        "job w is both live and ended",
    ),
    "a suspended job runs": (change("a", state=JobState.SUSPENDED), "suspended job a runs"),
    "a suspended job is forgotten": (
        change("a", state=JobState.SUSPENDED),
        "suspended jobs are [], not ['a']",
    ),
    "a shrunk job is made up": (
        lambda s: s.shrunk.update({JobId("a"): None}),
        "shrunk jobs are ['a'], not []",
    ),
    "a job shrinks without a decision": (
        change("a", state=JobState.SHRINKING),
        "shrinking job a has no decision to shrink",
    ),
    "a gang is too small": (
        change("a", request=replace(busy_lab().job("a").request, gpus=2)),
        "asked for 2 GPUs",
    ),
    "a leased GPU is unknown": (lambda s: s.devices.pop(gpu(0)), "has unknown GPUs"),
    "a sharer is forgotten": (lambda s: s.sharers.pop(gpu(2)), "sharers are {}"),
    "a shared GPU is leased": (
        change("s", grant=replace(busy_lab().job("s").grant, units=Units(gpus=(gpu(0),)))),
        "is leased to L0 and L2",
    ),
    "a share is beside a lease": (
        change(
            "s",
            grant=replace(busy_lab().job("s").grant, units=Units(gpus=(gpu(0),), share_bytes=1)),
        ),
        "is shared and leased to L0",
    ),
    "a slice is forgotten": (lambda s: s.slices.clear(), "slices are {}"),
    "a gang is mixed": (
        lambda s: (
            s.devices.update({gpu(0): replace(s.devices[gpu(0)], mig="1g.10gb")})
            or change("b", request=replace(busy_lab().job("b").request, gpus=2))(s)
            or change(
                "b", grant=replace(busy_lab().job("b").grant, units=Units(gpus=(gpu(0), gpu(1))))
            )(s)
        ),
        "slices of several profiles",
    ),
    "a rate is wrong": (
        lambda s: s.usage.update({ALICE: s.usage[ALICE]._replace(rate=9.0)}),
        "holds 9.0 GPUs, not 2.25",
    ),
    "a counter is behind": (lambda s: setattr(s, "next_job", 1), "number of 1 or more"),
    "decisions are counted twice": (lambda s: setattr(s, "next_decision", 1), "id of 1 or more"),
    "leases are counted twice": (lambda s: setattr(s, "next_lease", 1), "a lease has a number"),
    "a cancel is left": (lambda s: s.cancelling.update({JobId("a"): ""}), "not decided on"),
    "a GPU is available for a reason": (
        lambda s: s.devices.update({gpu(0): replace(s.devices[gpu(0)], reason="Xid 79")}),
        "is available and yet Xid 79",
    ),
    "a job that never started is measured": (change("b", use=Use(part=0.0)), "job b has the use"),
    "a warning stays after use rose": (
        change("a", state=JobState.RUNNING, use=Use(part=0.9, warned=WARN)),
        "a is warned and its use is not low",
    ),
    "a lowered job is warned": (
        change("a", use=Use(part=0.0, low_since=0.0, warned=WARN, lowered=LOWER)),
        "a is lowered and still warned",
    ),
    "a job that is not lowered may be raised": (
        change("a", use=Use(part=0.0, risen_since=0.0)),
        "a may be raised and is low or not lowered",
    ),
    "progress is no part": (
        change("a", progress=Progress(part=1.5, lease=LeaseId("L0"))),
        "a has the progress 1.5",
    ),
    "jobs are out of order": (
        lambda s: s.jobs.update({JobId("a"): s.jobs.pop(JobId("a"))}),
        "not in the order of submission",
    ),
}

BOOKED_BREAKS: dict[str, tuple[Callable[[State], object], str]] = {
    "a booked GPU is forgotten": (lambda s: s.booked.clear(), "booked are {}"),
    "an end is forgotten": (lambda s: setattr(s, "booking_ends_at", None), "ends at None, not 9"),
    "a booking is over": (lambda s: setattr(s, "at", 9.0), "booking b is over"),
    "a booking is misfiled": (
        lambda s: s.bookings.update({BookingId("x"): s.bookings.pop(BookingId("b"))}),
        "booking b is filed under x",
    ),
    "use is made up": (
        lambda s: s.bookings.update(
            {BookingId("b"): replace(s.bookings[BookingId("b")], unused_since=None)}
        ),
        "booking b is unused since None",
    ),
    "a released booking has GPUs": (
        lambda s: s.bookings.update(
            {BookingId("b"): replace(s.bookings[BookingId("b")], is_released=True)}
        ),
        "and is not open",
    ),
}


@pytest.mark.parametrize("case", BOOKED_BREAKS)
def test_a_broken_calendar_is_named(case: str) -> None:
    break_it, message = BOOKED_BREAKS[case]
    lab = busy_lab()
    booking = Booking(id=BookingId("b"), owner=ALICE, start_at=0.0, end_at=9.0, devices=(gpu(1),))
    lab.end("b")
    lab.cancel("w")
    lab.send(BookingMade(at=0, booking=booking))
    if lab.state.bookings[booking.id].unused_since is None:
        lab.end("w")
    break_it(lab.state)
    with pytest.raises(BrokenInvariant) as broken:
        check(lab.state)
    assert message in str(broken.value)


def test_a_sound_state_passes() -> None:
    check(busy_lab().state)


@pytest.mark.parametrize("case", BREAKS)
def test_a_broken_state_is_named(case: str) -> None:
    break_it, message = BREAKS[case]
    state = busy_lab().state
    break_it(state)
    with pytest.raises(BrokenInvariant) as broken:
        check(state)
    assert message in str(broken.value)


def test_a_gang_that_mixes_simulated_and_real_gpus_is_named() -> None:
    lab = Lab(gpus=2)
    lab.submit("a", gpus=2)
    lab.state.devices[gpu(1)] = replace(lab.state.devices[gpu(1)], simulated=True)
    with pytest.raises(BrokenInvariant, match="simulated and real"):
        check(lab.state)


def test_too_many_ended_jobs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = busy_lab()
    monkeypatch.setattr("workbench.core.invariants.ENDED_JOBS_KEPT", 0)
    with pytest.raises(BrokenInvariant, match="1 ended jobs are kept"):
        check(lab.state)


def test_the_status_of_a_lost_gpu_does_not_matter_to_its_lease() -> None:
    lab = busy_lab()
    lab.lose(0)
    assert lab.state.devices[DeviceId(gpu(0))].status is DeviceStatus.LOST
    check(lab.state)
