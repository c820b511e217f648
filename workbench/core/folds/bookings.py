"""Folds what becomes of bookings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from workbench.core.calendar import Booked, Booking, BookingId, Overstay, Span, spans
from workbench.core.decisions import OpenBooking, ReleaseBooking, WarnOverstay, WarnUnused
from workbench.core.events import BookingCancelled, BookingMade
from workbench.core.model import DeviceId, Seconds, Uid, Units
from workbench.core.state import State
from workbench.core.transitions import next_state, refuse


def booking_made(state: State, event: BookingMade) -> None:
    booking = event.booking
    if not booking.start_at < booking.end_at < float("inf") or booking.size < 1:
        refuse(event, "a booking has GPUs and ends after it starts")
    if booking.every_s is not None and booking.every_s < booking.end_at - booking.start_at:
        refuse(event, "a booking does not overlap itself")
    known = state.bookings.get(booking.id)
    if known is not None and known.booking.owner != booking.owner:
        refuse(event, "the booking id belongs to another owner")
    span = next(spans(booking, event.at), None)
    if span is None:
        refuse(event, "the booking is over")
    if known is None:
        fresh = Booked(booking=booking, number=state.next_booking, **span._asdict())
        state.next_booking += 1
    elif _goes_on(known, span, event.at) and _wants_the_same(known, booking):
        fresh = replace(known, booking=booking, **span._asdict())
    else:
        fresh = Booked(booking=booking, number=known.number, **span._asdict())
    _put(state, fresh)


def _goes_on(known: Booked, span: Span, at: Seconds) -> bool:
    """Whether what has begun is on at the changed times, too."""
    return known.is_open and known.end_at > at and span.start_at <= at


def _wants_the_same(known: Booked, booking: Booking) -> bool:
    fields = ("gpus", "devices", "node", "model")
    return all(getattr(known.booking, name) == getattr(booking, name) for name in fields)


def booking_cancelled(state: State, event: BookingCancelled) -> None:
    known = state.bookings.get(event.booking)
    if known is None:
        refuse(event, "there is no such booking")
    _drop(state, known)


def open_booking(state: State, decision: OpenBooking) -> None:
    known = _known(state, decision)
    if known.is_open or not known.start_at <= decision.at:
        refuse(decision, "the booking is open or does not begin yet")
    if known.start_at != decision.start_at:
        refuse(decision, f"the booking begins at {known.start_at}")
    for gpu in decision.gpus:
        if gpu not in state.devices or gpu in state.booked:
            refuse(decision, f"{gpu} is unknown or booked")
    is_used = _is_used(state, known.booking.owner, decision.gpus)
    since = None if is_used else decision.at
    _put(state, replace(known, is_open=True, gpus=decision.gpus, unused_since=since))


def warn_overstay(state: State, decision: WarnOverstay) -> None:
    known = _known(state, decision)
    job = state.jobs.get(decision.job)
    next_state(decision, job.state if job else None)
    if state.leases.get(decision.lease) != decision.job:
        refuse(decision, "the job does not hold this lease")
    overstay = Overstay(decision.lease, decision.at_latest)
    _put(state, replace(known, overstays=(*known.overstays, overstay)))


def warn_unused(state: State, decision: WarnUnused) -> None:
    known = _known(state, decision)
    if known.unused_since is None:
        refuse(decision, "the booking is used or did not begin")
    _put(state, replace(known, release_at=decision.release_at))


def release_booking(state: State, decision: ReleaseBooking) -> None:
    known = _known(state, decision)
    if known.release_at is None or decision.at < known.release_at:
        refuse(decision, "the owner was not warned, or still has time")
    _put(state, replace(known, is_released=True, gpus=(), unused_since=None, release_at=None))


def _known(
    state: State, decision: OpenBooking | WarnOverstay | WarnUnused | ReleaseBooking
) -> Booked:
    known = state.bookings.get(decision.booking)
    if known is None:
        refuse(decision, "there is no such booking")
    return known


def roll(state: State) -> None:
    """Brings bookings whose time is over to their next one, or off the calendar.

    Args:
        state: Changed in place.
    """
    for known in [one for one in state.bookings.values() if one.end_at <= state.at]:
        span = next(spans(known.booking, state.at), None)
        if span is None:
            _drop(state, known)
        else:
            _put(state, Booked(booking=known.booking, number=known.number, **span._asdict()))


def note_use(state: State, owner: Uid, units: Units, at: Seconds) -> None:
    """Notes that a lease begins or ends, where it holds booked GPUs.

    Args:
        state: Changed in place; knows the lease no more where that ends.
        owner: The owner of its job.
        units: What it holds.
        at: When.
    """
    for known in _of_gpus(state, units.gpus):
        if known.booking.owner != owner:
            note_change(state, known.gpus, at)
            continue
        since = None if _is_used(state, owner, known.gpus) else at
        _put(state, replace(known, unused_since=since, release_at=None))


def note_change(state: State, gpus: Iterable[DeviceId], at: Seconds) -> None:
    """Notes that booked GPUs may have come free, so that their owner has time to use them.

    Args:
        state: Changed in place.
        gpus: Which.
        at: When.
    """
    for known in _of_gpus(state, gpus):
        if known.unused_since is not None:
            _put(state, replace(known, unused_since=at, release_at=None))


def booked_by_others(state: State, owner: Uid, gpus: Iterable[DeviceId]) -> list[DeviceId]:
    """Lists the GPUs among these that an owner's jobs may not get now.

    Args:
        state: The state; it is not changed.
        owner: Whose jobs.
        gpus: Which GPUs.
    """
    return [
        gpu
        for gpu in gpus
        if (booking := state.booked.get(gpu)) is not None
        and state.bookings[booking].booking.owner != owner
    ]


def _of_gpus(state: State, gpus: Iterable[DeviceId]) -> list[Booked]:
    """Lists the open bookings of GPUs, each once."""
    ids: dict[BookingId, None] = {}
    for gpu in gpus:
        booking = state.booked.get(gpu)
        if booking is not None:
            ids[booking] = None
    return [state.bookings[one] for one in ids]


def _is_used(state: State, owner: Uid, gpus: Iterable[DeviceId]) -> bool:
    leases = (lease for gpu in gpus for lease in state.leases_on(gpu))
    return any(state.jobs[state.leases[one]].owner == owner for one in leases)


def _put(state: State, booked: Booked) -> None:
    before = state.bookings.get(booked.booking.id)
    state.bookings[booked.booking.id] = booked
    _reindex(state, before.gpus if before else (), booked)


def _drop(state: State, booked: Booked) -> None:
    del state.bookings[booked.booking.id]
    _reindex(state, booked.gpus, None)


def _reindex(state: State, before: tuple[DeviceId, ...], booked: Booked | None) -> None:
    after = booked.gpus if booked else ()
    if before != after:
        for gpu in before:
            del state.booked[gpu]
        if booked:
            state.booked.update(dict.fromkeys(after, booked.booking.id))
    state.booking_ends_at = min((one.end_at for one in state.bookings.values()), default=None)
