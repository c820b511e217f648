"""Bookings: what is kept for them, what becomes of overstaying jobs, and of bookings unused."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.builders import BOB, Lab, gpu, grant, seen
from workbench.core.apply import apply
from workbench.core.calendar import Booking, BookingId, Span, spans
from workbench.core.decisions import (
    Decision,
    Grant,
    OpenBooking,
    Preempt,
    ReleaseBooking,
    Stop,
    WarnOverstay,
    WarnUnused,
)
from workbench.core.errors import BookingConflict, IllegalEvent
from workbench.core.events import BookingCancelled, BookingMade, DeviceBusyOutside
from workbench.core.explain import explain
from workbench.core.model import JobId, JobState, Outcome, Preemption, Uid, Units
from workbench.core.scheduler import Scheduler
from workbench.core.settings import Settings
from workbench.core.state import State

HOUR_S, DAY_S, WEEK_S = 3600.0, 86400.0, 7 * 86400.0
MAY = {"preemption": (Preemption.CHECKPOINT,)}


def booking(owner: Uid = BOB, *, start_at: float, hours: float = 2, **more: Any) -> Booking:
    end_at = start_at + hours * HOUR_S
    return Booking(
        **{"id": BookingId("b"), "gpus": 2, "name": "class", **more},
        owner=owner,
        start_at=start_at,
        end_at=end_at,
    )


def book(lab: Lab, made: Booking, *, is_restated: bool = False) -> list[Decision]:
    return lab.send(BookingMade(at=lab.at, booking=made, is_restated=is_restated))


def lab_with(made: Booking, *, gpus: int = 4, **settings: Any) -> Lab:
    lab = Lab(gpus=gpus, settings=Settings(bound_s=None, ageing_s=None, **settings))
    book(lab, made)
    return lab


def kinds(decisions: list[Decision]) -> list[type]:
    return [type(decision) for decision in decisions]


# --- the calendar ------------------------------------------------------------------------------


def test_a_booking_recurs_until_it_does_not() -> None:
    weekly = booking(start_at=100.0, every_s=WEEK_S, until_at=100.0 + 2 * WEEK_S)
    first, second = (Span(100.0 + n * WEEK_S, 100.0 + n * WEEK_S + 7200) for n in (0, 1))
    assert list(spans(weekly, 0.0)) == [first, second]
    assert list(spans(weekly, first.end_at)) == [second]
    assert list(spans(weekly, first.end_at - 1)) == [first, second]
    assert list(spans(weekly, second.end_at)) == []


def test_a_weekly_class_gets_its_gpus_each_week() -> None:
    lab = lab_with(booking(start_at=HOUR_S, every_s=WEEK_S))
    for week in range(3):
        start_at = HOUR_S + week * WEEK_S
        assert lab.scheduler.next_wakeup() in {start_at - 900, start_at}
        lab.tick(start_at - 900)
        [opened] = lab.tick(start_at)
        assert isinstance(opened, OpenBooking)
        assert opened.gpus == (gpu(0), gpu(1))
        lab.submit(f"pupil{week}", BOB, gpus=2)
        assert lab.gpus_of(f"pupil{week}") == [gpu(0), gpu(1)]
        lab.end(f"pupil{week}")
        lab.submit(f"reuse{week}", BOB)
        lab.tick(start_at + 2 * HOUR_S)
        assert lab.state.booked == {}


def test_a_lab_without_bookings_keeps_nothing_of_them() -> None:
    lab = Lab(gpus=2)
    book(lab, booking(start_at=10.0))
    lab.send(BookingCancelled(at=0, booking=BookingId("b"), reason="rain"))
    assert (lab.state.bookings, lab.state.booked, lab.state.booking_ends_at) == ({}, {}, None)
    assert lab.scheduler.next_wakeup() is None


def test_summer_time_moves_a_night_that_has_begun() -> None:
    night = booking(start_at=HOUR_S, hours=10)
    lab = lab_with(night)
    lab.tick(HOUR_S)
    lab.submit("train", BOB, gpus=2)
    moved = replace(night, start_at=night.start_at - HOUR_S, end_at=night.end_at - HOUR_S)
    assert book(lab, moved, is_restated=True) == []
    assert lab.state.booked == {gpu(0): "b", gpu(1): "b"}
    lab.tick(10 * HOUR_S)
    assert lab.state.bookings == {}


def test_bookings_that_are_restated_may_meet_for_an_instant() -> None:
    morning, noon = (booking(start_at=HOUR_S, gpus=4), booking(start_at=3 * HOUR_S, gpus=4))
    noon = replace(noon, id=BookingId("n"))
    lab = lab_with(morning)
    book(lab, noon)
    later = [
        replace(one, start_at=one.start_at + HOUR_S, end_at=one.end_at + HOUR_S)
        for one in (morning, noon)
    ]
    with pytest.raises(BookingConflict):
        book(lab, later[0])
    for one in later:
        book(lab, one, is_restated=True)
    assert [one.start_at for one in lab.state.bookings.values()] == [2 * HOUR_S, 4 * HOUR_S]


# --- before it begins --------------------------------------------------------------------------


def test_what_ends_before_a_booking_or_leaves_enough_may_start() -> None:
    lab = lab_with(booking(start_at=HOUR_S, gpus=3))
    lab.submit("short", gpus=2, time_limit_s=HOUR_S)
    lab.submit("long", gpus=1, time_limit_s=2 * HOUR_S)
    lab.submit("toolong", gpus=1, time_limit_s=2 * HOUR_S)
    assert [lab.job(job).state for job in ("short", "long", "toolong")] == [
        "starting",
        "starting",
        "queued",
    ]
    assert explain(lab.state, lab.scheduler.standings, JobId("toolong")).reason == (
        "3 GPUs are booked by uid 1002 in 1 h: it could start now with a time limit of less than"
        " that, or if it may be preempted"
    )


def test_what_gives_way_may_start_and_is_told() -> None:
    lab = lab_with(booking(start_at=HOUR_S, gpus=4))
    [granted] = lab.submit("yields", gpus=2, **MAY)
    assert isinstance(granted, Grant)
    assert granted.reason.endswith(
        "; in 1 h it gives way to a booking of uid 1002 if it still runs"
    )


def test_a_job_of_unknown_length_is_kept_off_in_the_shadow_alone() -> None:
    lab = lab_with(booking(start_at=6 * HOUR_S, gpus=3))
    [first, second] = [*lab.submit("one", gpus=1), *lab.submit("two", gpus=1)]
    assert isinstance(first, Grant)
    assert first.reason == "class normal: it is its turn"
    assert isinstance(second, Grant)
    assert second.reason.endswith(
        "; in 6 h it is stopped for a booking of uid 1002 if it still runs"
    )
    lab.tick(2 * HOUR_S + 1)
    assert lab.submit("three", gpus=1) == []
    assert lab.submit("known", BOB, gpus=1, expected_s=HOUR_S)


def test_a_job_behind_one_that_is_kept_off_may_start() -> None:
    lab = lab_with(booking(start_at=HOUR_S, gpus=4))
    lab.submit("endless", gpus=1)
    lab.submit("short", gpus=1, time_limit_s=60.0)
    assert lab.gpus_of("endless") == []
    assert lab.gpus_of("short") == [gpu(0)]


def test_a_booking_of_named_gpus_keeps_those_and_no_others() -> None:
    lab = lab_with(booking(start_at=HOUR_S, devices=(gpu(0), gpu(2))))
    lab.submit("endless", gpus=2)
    assert lab.gpus_of("endless") == [gpu(1), gpu(3)]


# --- when it begins ----------------------------------------------------------------------------


def test_who_overstays_is_warned_then_preempted_or_stopped() -> None:
    lab = lab_with(booking(start_at=6 * HOUR_S, gpus=4))
    for job, more in {"yields": MAY, "stays": {}}.items():
        lab.submit(job, gpus=2, **more)
        lab.start(job)
    warnings = lab.tick(6 * HOUR_S - 900)
    assert kinds(warnings) == [WarnOverstay, WarnOverstay]
    assert [(one.job, one.at_latest) for one in warnings if isinstance(one, WarnOverstay)] == [
        ("yields", 6 * HOUR_S),
        ("stays", 6 * HOUR_S),
    ]
    assert explain(lab.state, lab.scheduler.standings, JobId("stays")).reason == (
        "its GPUs are booked by uid 1002: it has to end in 15 min"
    )
    assert lab.scheduler.next_wakeup() == 6 * HOUR_S
    opened, preempt, stop = lab.tick(6 * HOUR_S)
    assert isinstance(opened, OpenBooking)
    assert isinstance(preempt, Preempt)
    assert (preempt.winner, preempt.booking, preempt.step) == (None, "b", "checkpoint")
    assert isinstance(stop, Stop)
    assert stop.outcome is Outcome.KILLED
    assert lab.scheduler.unconfirmed() == [preempt, stop]
    lab.submit("pupil", BOB, gpus=4)
    lab.end("yields", Outcome.KILLED)
    assert lab.job("yields").state is JobState.QUEUED
    [granted] = lab.end("stays", Outcome.KILLED)
    assert isinstance(granted, Grant)
    assert granted.reason == "its owner booked its GPUs"
    assert lab.job("stays").detail == "its GPUs are booked by uid 1002, and it was warned"
    assert explain(lab.state, lab.scheduler.standings, JobId("yields")).reason == (
        "it waits for 2 GPUs, 0 free: 4 GPUs are booked by uid 1002 for 2 h more"
    )


def test_nobody_is_warned_who_is_over_before() -> None:
    lab = lab_with(booking(start_at=HOUR_S, gpus=4))
    lab.submit("short", gpus=4, time_limit_s=HOUR_S - 60)
    lab.start("short")
    assert lab.tick(HOUR_S - 900) == []


def test_nobody_has_to_go_who_need_not() -> None:
    lab = Lab(gpus=4)
    for job, more in {"stays": {"gpus": 1}, "wide": {"gpus": 2, **MAY}}.items():
        lab.submit(job, **more)
        lab.start(job)
    lab.tick(100.0)
    opened, warn, preempt = book(lab, booking(start_at=100.0, gpus=3))
    assert isinstance(opened, OpenBooking)
    assert sorted(opened.gpus) == [gpu(1), gpu(2), gpu(3)]
    assert isinstance(warn, WarnOverstay)
    assert isinstance(preempt, Preempt)
    assert warn.job == preempt.job == "wide"


def test_a_wide_job_that_has_to_go_spares_the_narrow_one() -> None:
    lab = Lab(gpus=3)
    for job, gpus in {"narrow": 1, "wide": 2}.items():
        lab.submit(job, gpus=gpus, **MAY)
        lab.start(job)
    lab.tick(100.0)
    preempts = [one for one in book(lab, booking(start_at=100.0)) if isinstance(one, Preempt)]
    assert [one.job for one in preempts] == ["wide"]


def test_a_booking_at_short_notice_stops_nobody_unwarned() -> None:
    lab = Lab(gpus=2)
    lab.submit("stays", gpus=2)
    lab.start("stays")
    opened, warned = book(lab, booking(start_at=0.0))
    assert kinds([opened, warned]) == [OpenBooking, WarnOverstay]
    assert lab.scheduler.next_wakeup() == 900.0
    assert kinds(lab.tick(900.0)) == [Stop]


def test_a_lab_may_choose_to_stop_nobody() -> None:
    lab = lab_with(booking(start_at=HOUR_S), gpus=2, booking_stops=False, booking_shadow_s=0.0)
    lab.submit("stays", gpus=2)
    lab.start("stays")
    [warned] = lab.tick(HOUR_S - 900)
    assert isinstance(warned, WarnOverstay)
    assert "asked to end" in warned.reason
    assert kinds(lab.tick(HOUR_S)) == [OpenBooking]
    assert lab.tick(2 * HOUR_S) == []
    lab.submit("next")
    lab.submit("gpu", gpus=1)
    lab.end("stays")
    assert lab.gpus_of("gpu") == []


def test_a_grace_comes_on_top_of_the_warning() -> None:
    lab = lab_with(booking(start_at=5 * HOUR_S), gpus=2, booking_grace_s=300.0)
    lab.submit("stays", gpus=2)
    lab.start("stays")
    lab.tick(5 * HOUR_S - 900)
    assert kinds(lab.tick(5 * HOUR_S)) == [OpenBooking]
    assert kinds(lab.tick(5 * HOUR_S + 300)) == [Stop]


def test_an_open_booking_keeps_its_gpus_to_its_owner_by_law() -> None:
    lab = lab_with(booking(start_at=0.0), gpus=2)
    lab.submit("other", gpus=1)
    taken = Scheduler.restore(lab.policy, lab.entries).state
    with pytest.raises(IllegalEvent, match="booked by somebody else"):
        apply(taken, grant_of(taken, "other"))


def grant_of(state: State, job: str) -> Grant:
    return grant(
        state.next_decision, state.at, state.next_lease, job, Units(gpus=(gpu(0),), cores=1)
    )


def test_a_gang_gets_its_booked_gpus_on_one_node() -> None:
    lab = Lab(gpus=0)
    for number, node in enumerate("aabb"):
        lab.send(seen(0, number, node=node))
    lab.submit("one", gpus=1, **MAY)
    lab.start("one")
    lab.submit("two", BOB, gpus=1, time_limit_s=50.0)
    lab.tick(60.0)
    lab.end("two")
    decisions = book(lab, booking(start_at=60.0))
    assert isinstance(decisions[0], OpenBooking)
    assert decisions[0].gpus == (gpu(2), gpu(3))
    lab.submit("gang", BOB, gpus=2)
    assert lab.gpus_of("gang") == [gpu(2), gpu(3)]


# --- unused ------------------------------------------------------------------------------------


def test_an_unused_booking_is_released_after_a_warning_and_comes_again() -> None:
    lab = lab_with(booking(start_at=HOUR_S, every_s=WEEK_S), gpus=2)
    lab.tick(HOUR_S)
    lab.submit("other", gpus=2)
    [warned] = lab.tick(HOUR_S + 900)
    assert isinstance(warned, WarnUnused)
    assert warned.release_at == HOUR_S + 1800
    released, granted = lab.tick(HOUR_S + 1800)
    assert isinstance(released, ReleaseBooking)
    assert isinstance(granted, Grant)
    assert granted.job == "other"
    lab.end("other")
    lab.tick(WEEK_S + HOUR_S - 900)
    assert kinds(lab.tick(WEEK_S + HOUR_S)) == [OpenBooking]


def test_a_job_of_the_owner_cancels_the_release() -> None:
    lab = lab_with(booking(start_at=0.0, hours=9), gpus=2)
    lab.tick(900.0)
    lab.submit("late", BOB, gpus=1)
    assert lab.tick(1800.0) == []
    lab.tick(HOUR_S)
    lab.end("late")
    assert kinds(lab.tick(HOUR_S + 900)) == [WarnUnused]
    assert kinds(lab.tick(HOUR_S + 1800)) == [ReleaseBooking]


def test_a_booking_is_not_released_for_what_others_do() -> None:
    lab = lab_with(booking(start_at=6 * HOUR_S), gpus=2, booking_stops=False)
    lab.submit("stays", gpus=1)
    lab.start("stays")
    lab.tick(6 * HOUR_S)
    assert lab.tick(7 * HOUR_S) == []
    lab.end("stays")
    assert lab.tick(7 * HOUR_S + 899) == []
    assert kinds(lab.tick(7 * HOUR_S + 900)) == [WarnUnused]


def test_three_booked_days_at_no_use_beside_another_s_process() -> None:
    """Hoarded reservations: a 3-day booking that nobody uses, and a stranger's process on it."""
    lab = lab_with(booking(start_at=DAY_S, hours=72), gpus=3)
    lab.submit("overstays", gpus=2, **MAY)
    lab.start("overstays")
    lab.tick(DAY_S - 900)
    lab.send(DeviceBusyOutside(at=lab.at, device=gpu(2), reason="python of uid 1009"))
    opened, preempt = lab.tick(DAY_S)
    assert isinstance(opened, OpenBooking)
    assert opened.gpus == (gpu(0), gpu(1))
    assert isinstance(preempt, Preempt)
    lab.end("overstays", Outcome.KILLED)
    told: list[Decision] = []
    at = DAY_S
    while at < DAY_S + 6 * HOUR_S:
        at = min(lab.scheduler.next_wakeup() or at, DAY_S + 6 * HOUR_S)
        told += lab.tick(at)
    assert kinds(told)[:2] == [WarnUnused, ReleaseBooking]
    assert told[1].at == DAY_S + 1800
    assert lab.gpus_of("overstays") == [gpu(0), gpu(1)]
    restored = Scheduler.restore(lab.policy, lab.entries, settings=lab.settings)
    assert restored.state == lab.state
    assert restored.next_wakeup() == lab.scheduler.next_wakeup()
