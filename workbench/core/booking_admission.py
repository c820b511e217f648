"""What users may book, checked before an event reaches `apply`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from workbench.core.calendar import Booking, Span, span_at, spans
from workbench.core.errors import BookingConflict, NeverFits, UserError
from workbench.core.events import BookingCancelled, BookingMade
from workbench.core.model import DeviceId, DeviceStatus, Seconds, Uid
from workbench.core.placement import gpus_in_service
from workbench.core.seating import Demand, seat, suits
from workbench.core.settings import Settings
from workbench.core.spelling import count, spell_seconds
from workbench.core.state import Device, State

TIMES_CHECKED = 53
"""So many times of a recurring booking are checked against the others: a year of weeks."""
_TRIES = 500
"""So many other times are tried to find the nearest that is free."""


def admit_booking(state: State, settings: Settings, event: BookingMade | BookingCancelled) -> None:
    """Refuses a booking that cannot be.

    Args:
        state: The state; it is not changed.
        settings: The lab's rules.
        event: What a user asked for.

    Raises:
        NeverFits: There are not so many GPUs.
        BookingConflict: Others booked too many of them for that time.
        UserError: Its times make no sense, it is somebody else's, or no such booking is known.
    """
    if isinstance(event, BookingCancelled):
        if event.booking not in state.bookings:
            message = f"no booking {event.booking} is on the calendar"
            raise UserError(message, next_step="Look at the calendar for those that are")
        return
    booking, known = event.booking, state.bookings.get(event.booking.id)
    if known is not None and known.booking.owner != booking.owner:
        message = f"the booking id {booking.id} belongs to uid {known.booking.owner}"
        raise UserError(message, next_step="Book again under a new id")
    if known is not None and known.booking == booking:
        return
    _check_times(settings, booking, event.at, is_new=known is None)
    _check_size(state, booking)
    if known is None or not event.is_restated:
        _check_others(state, booking, event.at)


def _check_times(settings: Settings, booking: Booking, at: Seconds, *, is_new: bool) -> None:
    start_at, end_at = booking.start_at, booking.end_at
    if not start_at < end_at < float("inf"):
        message = f"end={end_at:g}: it is not after the start, {start_at:g}"
        raise UserError(message, next_step="Give an end that is later than the start")
    if start_at < at and is_new:
        message = f"start={start_at:g}: that was {spell_seconds(at - start_at)} ago"
        raise UserError(message, next_step="Give a start that is not in the past")
    length_s, longest = end_at - start_at, spell_seconds(settings.booking_max_s)
    if length_s > settings.booking_max_s:
        message = f"the booking is {spell_seconds(length_s)} long: the lab allows {longest}"
        raise UserError(message, next_step=f"Book at most {longest}")
    if booking.every_s is not None and not length_s <= booking.every_s < float("inf"):
        message = f"every={booking.every_s:g} s: the booking is {spell_seconds(length_s)} long"
        raise UserError(message, next_step="Have it recur after at least its own length")
    if booking.until_at is not None and booking.until_at <= start_at:
        message = f"until={booking.until_at:g}: it is not after the start, {start_at:g}"
        raise UserError(message, next_step="Give an end of the series that is later than its start")
    if next(spans(booking, at), None) is None:
        message = f"end={end_at:g}: that was {spell_seconds(at - end_at)} ago"
        raise UserError(message, next_step="Cancel the booking and make a new one")


def _check_size(state: State, booking: Booking) -> None:
    if booking.size < 1:
        message = f"gpus={booking.gpus} is less than 1"
        raise NeverFits(message, next_step="Book at least 1 GPU")
    for number, device in enumerate(booking.devices):
        if device not in state.devices or device in booking.devices[:number]:
            message = f"device={device} is no GPU of this lab, or named twice"
            raise NeverFits(message, next_step="Name GPUs that `workbench status` lists, each once")
    suitable = len([gpu for gpu in _gpus(state, booking) if suits(booking, gpu)])
    if suitable < booking.size:
        where = "" if booking.node is None else f" on node {booking.node}"
        which = "" if booking.model is None else f" of model {booking.model}"
        message = f"gpus={booking.gpus}: this lab has {count(suitable, 'GPU')}{which}{where}"
        raise NeverFits(message, next_step=f"Book at most {count(suitable, 'GPU')}{which}{where}")


def _gpus(state: State, booking: Booking) -> list[Device]:
    """Lists the GPUs that may be booked: those that are missing only by name."""
    named = [state.devices[one] for one in booking.devices if one in state.devices]
    missing = [gpu for gpu in named if gpu.status is DeviceStatus.MISSING]
    return [*gpus_in_service(state), *missing]


def _check_others(state: State, booking: Booking, at: Seconds) -> None:
    others = _Others(state, booking)
    found = others.conflict(booking, at)
    if found is None:
        return
    other, when, left = found
    free = others.nearest(booking, at)
    start = spell_seconds(when - at)
    name = f"{other.name!r} " if other.name else ""
    message = (
        f"gpus={booking.size}: in {start} {left} of them can be had, for the booking {name}of uid "
        f"{other.owner} has {count(other.size, 'GPU')} then"
    )
    fewer = f"Book at most {count(left, 'GPU')}, or " if left and not booking.devices else ""
    shift = "another time"
    if free is not None:
        shift = f"the same {spell_seconds(abs(free - booking.start_at))} " + (
            "later" if free > booking.start_at else "earlier"
        )
    next_step = f"{fewer}{'book' if fewer else 'Book'} {shift}"
    raise BookingConflict(message, next_step=next_step, booking=other.id, free_at=free)


class _Others:
    """The other bookings, to check one against."""

    def __init__(self, state: State, booking: Booking) -> None:
        self._gpus = _gpus(state, booking)
        self._booked = {
            one.booking.id: one for one in state.bookings.values() if one.booking.id != booking.id
        }
        self._others = [one.booking for one in self._booked.values()]

    def conflict(self, booking: Booking, at: Seconds) -> tuple[Booking, Seconds, int] | None:
        """Finds the first time at which not all bookings can have their GPUs.

        Returns:
            A booking that is in the way, when, and how many GPUs are left; None where all can.
        """
        for span in islice(spans(booking, at), TIMES_CHECKED):
            for when in self._starts(Span(max(span.start_at, at), span.end_at)):
                present, demands = [], []
                for other in self._others:
                    demand = self._demand(other, when)
                    if demand is not None:
                        present.append(other)
                        demands.append(demand)
                demands.append(Demand(booking.owner, booking.size, partial(suits, booking)))
                given = seat(demands, self._gpus, _is_left)
                if len(given) < sum(demand.size for demand in demands):
                    left = sum(number == len(present) for number in given.values())
                    return self._in_the_way(booking, present), when, left
        return None

    def _demand(self, other: Booking, when: Seconds) -> Demand | None:
        """What another one needs at a time: its very GPUs if it is open, and nothing if released.

        What ended since the latest event is rolled on only when this one is folded.
        """
        span, booked = span_at(other, when), self._booked[other.id]
        if span is None or (span.start_at == booked.start_at and booked.is_released):
            return None
        if span.start_at == booked.start_at and booked.is_open:
            return Demand(other.owner, len(booked.gpus), partial(_is_one_of, booked.gpus))
        return Demand(other.owner, other.size, partial(suits, other))

    def _in_the_way(self, booking: Booking, present: list[Booking]) -> Booking:
        """The largest of those that share GPUs with it; the first of equal ones."""

        def rank(other: Booking) -> tuple[bool, int]:
            shares = any(suits(booking, gpu) and suits(other, gpu) for gpu in self._gpus)
            return shares, other.size

        return max(present, key=rank)

    def _starts(self, span: Span) -> list[Seconds]:
        """Lists when what is needed grows within a span."""
        starts = [span.start_at]
        for other in self._others:
            for one in spans(other, span.start_at):
                if one.start_at >= span.end_at:
                    break
                if one.start_at > span.start_at:
                    starts.append(one.start_at)
        return sorted(starts)

    def nearest(self, booking: Booking, at: Seconds) -> Seconds | None:
        """Finds the nearest start at which a booking has what it needs, all its times."""
        length_s = booking.end_at - booking.start_at
        tries = [
            start
            for one in self._edges(at)
            for start in (one.end_at, one.start_at - length_s)
            if start >= at
        ]
        tries.sort(key=lambda start: (abs(start - booking.start_at), start))
        for start in list(dict.fromkeys(tries))[:_TRIES]:
            shift_s = start - booking.start_at
            until_at = None if booking.until_at is None else booking.until_at + shift_s
            moved = replace(booking, start_at=start, end_at=start + length_s, until_at=until_at)
            if self.conflict(moved, at) is None:
                return start
        return None

    def _edges(self, at: Seconds) -> Iterator[Span]:
        """The times of others around it: at one's begin or end something comes free."""
        for other in self._others:
            yield from islice(spans(other, at), TIMES_CHECKED)


def _is_one_of(gpus: tuple[DeviceId, ...], gpu: Device) -> bool:
    return gpu.id in gpus


def _is_left(_gpu: Device, _owner: Uid) -> bool:
    return True
