"""Bookings on the calendar, and when they are.

All times are on the lab's clock. People book by the wall clock, so the driver converts: the core
adds `every_s` to `start_at` and knows nothing of time zones. Where the wall clock moves against the
lab's (summer time begins or ends, the host's clock is set), the driver restates each booking: a
`BookingMade` with the same id, moved times and `is_restated`. What is on goes on, with the GPUs and
warnings that it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor
from typing import NamedTuple, NewType

from workbench.core.model import DeviceId, LeaseId, Seconds, Uid

BookingId = NewType("BookingId", str)
"""128 random bits in hexadecimal, made by the client, so that a booking is idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """GPUs that a user reserves from a time on, once or again and again.

    Attributes:
        id: Made by the client.
        owner: Whose jobs may run there.
        start_at: When it begins; the first time where it recurs.
        end_at: When it ends; the first time where it recurs.
        gpus: How many; not read where `devices` names them.
        devices: The very GPUs; empty for any that suit.
        node: The machine that they are in; None for any.
        model: A part of the model's name in any case; None for any.
        every_s: It recurs so long after it began, at least its own length; None for once.
        until_at: It does not begin any more from then on; None for no end.
        name: For people.
    """

    id: BookingId
    owner: Uid
    start_at: Seconds
    end_at: Seconds
    gpus: int = 0
    devices: tuple[DeviceId, ...] = ()
    node: str | None = None
    model: str | None = None
    every_s: Seconds | None = None
    until_at: Seconds | None = None
    name: str = ""

    @property
    def size(self) -> int:
        """How many GPUs it is for."""
        return len(self.devices) or self.gpus


class Span(NamedTuple):
    """One of the times that a booking is for: from `start_at` until just before `end_at`."""

    start_at: Seconds
    end_at: Seconds


class Overstay(NamedTuple):
    """A lease that was warned, and when it has to be over."""

    lease: LeaseId
    at_latest: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Booked:
    """A booking, and how far it got the time that is on or comes next.

    Attributes:
        booking: As its owner made it.
        number: Counts bookings up from 0; smaller came first.
        start_at: When it begins, this time.
        end_at: When it ends, this time; after now.
        is_open: Whether it has begun and its GPUs are chosen.
        gpus: Those that only its owner's jobs may get now; empty unless it is open. Fewer than were
            booked where there are not so many any more, or, as the choice is fixed, where bookings
            of particular GPUs overlap others that together need all there are.
        unused_since: Since when no job of its owner holds any of them though one could; None while
            one does, and unless it is open.
        release_at: When it is released if it stays unused; None unless the owner was warned.
        is_released: Whether it was given back for this time.
        overstays: Leases of others that were warned, this time.
    """

    booking: Booking
    number: int
    start_at: Seconds
    end_at: Seconds
    is_open: bool = False
    gpus: tuple[DeviceId, ...] = ()
    unused_since: Seconds | None = None
    release_at: Seconds | None = None
    is_released: bool = False
    overstays: tuple[Overstay, ...] = ()


def spans(booking: Booking, at: Seconds) -> Iterator[Span]:
    """Lists the times that a booking is for.

    Args:
        booking: Any booking.
        at: A time.

    Yields:
        The one that is on at this time or comes next, and those after it; may never end.
    """
    every_s, until_at = booking.every_s, booking.until_at
    number = 0
    if every_s is not None and booking.end_at <= at:
        number = max(floor((at - booking.end_at) / every_s), 0)
    while True:
        shift_s = 0.0 if every_s is None else number * every_s
        span = Span(booking.start_at + shift_s, booking.end_at + shift_s)
        if until_at is not None and span.start_at >= until_at:
            return
        if span.end_at > at:
            yield span
        if every_s is None:
            return
        number += 1


def span_at(booking: Booking, at: Seconds) -> Span | None:
    """Says which of its times is on at a time.

    Args:
        booking: Any booking.
        at: The time.

    Returns:
        It; None where none is.
    """
    span = next(spans(booking, at), None)
    return span if span is not None and span.start_at <= at else None
