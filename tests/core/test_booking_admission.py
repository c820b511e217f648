"""What may be booked, and what a refusal says."""

from typing import Any

import pytest

from tests.core.builders import ALICE, Lab, gpu
from tests.core.test_bookings import DAY_S, HOUR_S, WEEK_S, book, booking, lab_with
from workbench.core.calendar import BookingId
from workbench.core.errors import BookingConflict, NeverFits, UserError
from workbench.core.events import BookingCancelled

REFUSED: dict[str, tuple[dict[str, Any], type[UserError], str]] = {
    "an end before the start": ({"hours": -1}, UserError, "end=6400: it is not after the start"),
    "a start in the past": ({"start_at": 100.0}, UserError, "start=100: that was 15 min ago"),
    "none": ({"gpus": 0}, NeverFits, "gpus=0 is less than 1. Book at least 1 GPU"),
    "too many": ({"gpus": 5}, NeverFits, "gpus=5: this lab has 4 GPUs. Book at most 4 GPUs"),
    "too many of a model": (
        {"model": "h100"},
        NeverFits,
        "gpus=2: this lab has 0 GPUs of model h100",
    ),
    "an unknown GPU": ({"devices": (gpu(9),)}, NeverFits, "is no GPU of this lab"),
    "too long": ({"hours": 169}, UserError, "7 d 1 h long: the lab allows 7 d. Book at most 7 d"),
    "over itself": ({"every_s": 60.0}, UserError, "every=60 s: the booking is 2 h long"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_booked_is_refused(case: str) -> None:
    wrong, error, message = REFUSED[case]
    lab = Lab(gpus=4)
    lab.tick(1000.0)
    with pytest.raises(error, match=message):
        book(lab, booking(**{"start_at": 10_000.0, **wrong}))


def test_a_booking_in_the_way_is_named_and_the_nearest_free_time() -> None:
    lab = lab_with(booking(start_at=4 * HOUR_S, gpus=3))
    with pytest.raises(BookingConflict) as refused:
        book(lab, booking(ALICE, start_at=5 * HOUR_S, id=BookingId("mine")))
    assert refused.value.booking == "b"
    assert refused.value.free_at == 6 * HOUR_S
    assert str(refused.value) == (
        "gpus=2: in 5 h 1 of them can be had, for the booking 'class' of uid 1002 has 3 GPUs then."
        " Book at most 1 GPU, or book the same 1 h later"
    )
    book(lab, booking(ALICE, start_at=6 * HOUR_S, id=BookingId("mine")))


def test_a_series_is_checked_at_all_its_times() -> None:
    lab = lab_with(booking(start_at=3 * WEEK_S, gpus=4))
    daily = booking(ALICE, start_at=DAY_S, every_s=DAY_S, id=BookingId("daily"), gpus=1)
    with pytest.raises(BookingConflict, match="in 21 d"):
        book(lab, daily)


def test_the_gpus_of_an_open_booking_cannot_be_booked_by_name() -> None:
    lab = lab_with(booking(start_at=0.0))
    named = booking(ALICE, start_at=HOUR_S, id=BookingId("n"), devices=(gpu(0),))
    with pytest.raises(BookingConflict):
        book(lab, named)


def test_another_s_booking_is_neither_changed_nor_unknown_ones_cancelled() -> None:
    lab = lab_with(booking(start_at=HOUR_S))
    with pytest.raises(UserError, match="belongs to uid 1002"):
        book(lab, booking(ALICE, start_at=HOUR_S))
    with pytest.raises(UserError, match="no booking x"):
        lab.send(BookingCancelled(at=0, booking=BookingId("x"), reason=""))
