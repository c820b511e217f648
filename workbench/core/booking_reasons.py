"""What people are told of bookings that their jobs wait for, or have to make way for."""

from __future__ import annotations

from workbench.core.calendar import BookingId
from workbench.core.guard import Guard
from workbench.core.job import Job
from workbench.core.model import DeviceId, LeaseId, Shape
from workbench.core.placement import Pool
from workbench.core.settings import Settings
from workbench.core.spelling import count, spell_seconds
from workbench.core.state import State


class Calendar:
    """Explains waiting jobs by the bookings of others.

    Args:
        state: The state; it is not changed.
        settings: The lab's rules.
    """

    def __init__(self, state: State, settings: Settings) -> None:
        self._state = state
        self._pool = Pool.of(state)
        self._guard = Guard(state, settings, state.booked, {})

    def kind(self, job: Job) -> object:
        """Returns what jobs have in common of which the same is to be said.

        Args:
            job: A waiting job.
        """
        return self._guard.kind(job)

    def closed(self, job: Job) -> dict[DeviceId, str]:
        """Lists the GPUs that others booked and have now, and what to say of them.

        Args:
            job: A waiting job.
        """
        bookings = self._state.bookings
        return {
            gpu: self._says(booking)
            for gpu, booking in self._state.booked.items()
            if bookings[booking].booking.owner != job.owner
        }

    def keeps_off(self, job: Job, shape: Shape) -> str:
        """Says which booking to come keeps a job from starting, and what could start now.

        Args:
            job: A waiting job.
            shape: What it asks for.
        """
        start = self._guard.keeps_off(job, shape, self._pool)
        if start is None:
            return ""
        booking, state = self._state.bookings[start.booking].booking, self._state
        in_ = spell_seconds(start.at - state.at)
        booked = many(f"booked by uid {booking.owner} in {in_}", booking.size)
        can = "it could start now with a time limit of less than that, or if it may be preempted"
        return f"{booked}: {can}"

    def _says(self, booking: BookingId) -> str:
        one = self._state.bookings[booking]
        left = spell_seconds(one.end_at - self._state.at)
        return f"booked by uid {one.booking.owner} for {left} more"


def many(what: str, gpus: int) -> str:
    """Says of how many GPUs something is so.

    Args:
        what: Such as `booked by uid 1001`.
        gpus: How many.
    """
    return f"{count(gpus, 'GPU')} {'is' if gpus == 1 else 'are'} {what}"


def overstays(state: State, lease: LeaseId) -> str:
    """Says when a running job has to make way for a booking.

    Args:
        state: The state; it is not changed.
        lease: Its lease.

    Returns:
        One sentence without its full stop; empty where it was not warned.
    """
    for one in state.bookings.values():
        for overstay in one.overstays:
            if overstay.lease == lease and not one.is_released:
                in_ = spell_seconds(overstay.at_latest - state.at)
                return f"its GPUs are booked by uid {one.booking.owner}: it has to end in {in_}"
    return ""
