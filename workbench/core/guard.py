"""Keeps jobs off GPUs that others booked, in one round of decisions.

While a booking is on, its GPUs are its owner's alone. Before, it is a reservation like that of a
waiting job, of so many GPUs that suit and not of particular ones: a job may start where it is
expected to end before, where it gives way, or where enough is left. One of unknown length that
gives way to nobody is kept off for `Settings.booking_shadow_s` before a booking alone; further away
it may start and is told what happens then, so that a booking next week idles nothing today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from heapq import merge
from typing import Final, NamedTuple

from workbench.core.calendar import Booking, BookingId, span_at, spans
from workbench.core.job import Job, stopping_step
from workbench.core.model import DeviceId, JobId, Seconds, Shape, Uid, Units
from workbench.core.placement import Pool, gpus_in_service
from workbench.core.seating import Demand, seat, stays_until, suits
from workbench.core.settings import Settings
from workbench.core.spelling import spell_seconds
from workbench.core.state import Device, State, expected_end

LOOK_AHEAD_S: Final = 28 * 24 * 3600.0
"""Bookings further away keep no job from starting, whatever its time limit."""
_TOLD: Final = 8
"""A grant tells of one of the next so many starts."""
_TRIES: Final = 32
"""So many jobs of one shape are looked at behind one that only a booking keeps from starting."""


_MANY: Final = Uid(-1)
"""Stands for more owners than one."""


class Start(NamedTuple):
    """When bookings begin; one instant, however many do."""

    at: Seconds
    booking: BookingId


class _Key(NamedTuple):
    """Jobs of one key may use the same GPUs: of this owner, if it booked any, and until then."""

    owner: Uid | None
    reach: int


def _is_among(gpus: Mapping[DeviceId, None], gpu: Device) -> bool:
    return gpu.id in gpus


class Guard:
    """Places jobs where no booking of others is in the way.

    Args:
        state: The state; it is not changed.
        settings: The lab's rules.
        open_: The open booking of each GPU that is booked from now on.
        leaving: Jobs that are on their way out.
    """

    def __init__(
        self,
        state: State,
        settings: Settings,
        open_: Mapping[DeviceId, BookingId],
        leaving: Mapping[JobId, object],
    ) -> None:
        self._state = state
        self._settings = settings
        self._open = open_
        self._leaving = leaving
        self._owners = dict.fromkeys(one.booking.owner for one in state.bookings.values())
        self._coming = self._starts()
        self._known_starts: list[Start] = []
        self._stays: dict[DeviceId, tuple[Uid, Seconds]] | None = None
        self._ranked: list[Device] | None = None
        self._misfits: dict[tuple[Shape, _Key], None] = {}
        self._tries: dict[Shape, int] = {}
        self._fits: dict[Shape, bool] = {}
        self._shadowed: int | None = None
        self._pools: dict[_Key, Pool] = {}
        self._own_pools: dict[Uid, Pool] = {}
        self._kept: dict[tuple[Uid | None, int], dict[DeviceId, None]] = {}

    def owners(self) -> list[Uid]:
        """Lists the owners of open bookings, the booking that was opened first first."""
        bookings = self._state.bookings
        return list(dict.fromkeys(bookings[one].booking.owner for one in self._open.values()))

    def kind(self, job: Job) -> object:
        """Returns what jobs have in common that may use the same GPUs.

        Args:
            job: A waiting job.
        """
        return self._key(job)

    def place(self, job: Job, shape: Shape, pool: Pool) -> Units | None:
        """Chooses units for a job.

        Args:
            job: The job.
            shape: What it asks for.
            pool: What is free in this round.

        Returns:
            GPUs that no booking of others needs while the job runs; None where there are not
            enough.
        """
        if not shape.gpus or not pool.may_fit(shape):
            return pool.place(shape)
        key = self._key(job)
        if (shape, key) in self._misfits:
            return None
        units = self.pool_for(job, pool).place(shape)
        if units is None and key.reach:
            other = self._pool(_Key(key.owner, 0), pool).place(shape)
            if other is not None and self.takes_from(job, other, key.reach, pool) is None:
                units = other
        if units is None:
            self._misfits[shape, key] = None
        return units

    def place_own(self, job: Job, shape: Shape, pool: Pool) -> Units | None:
        """Chooses units for a job among the GPUs that its owner booked.

        Args:
            job: The job.
            shape: What it asks for.
            pool: What is free in this round.
        """
        own = self._own_pools.get(job.owner)
        if own is None:
            mine = [gpu for gpu, one in self._open.items() if self._owner(one) == job.owner]
            if not mine:
                return None
            own = self._own_pools[job.owner] = pool.copy()
            own.restrict(dict.fromkeys(mine).__contains__)
        return own.place(shape)

    def pool_for(self, job: Job, pool: Pool) -> Pool:
        """Returns what of a pool a job may use, to be read only.

        Args:
            job: The job.
            pool: What is free in this round.
        """
        return self._pool(self._key(job), pool)

    def is_worth_a_look(self, shape: Shape, pool: Pool) -> bool:
        """Tells whether another job of a shape may start where one may not: so many are looked at.

        Args:
            shape: What they ask for.
            pool: What is free in this round.
        """
        self._tries[shape] = self._tries.get(shape, 0) + 1
        if self._tries[shape] >= _TRIES:
            return False
        fits = self._fits.get(shape)
        if fits is None:
            fits = self._fits[shape] = pool.place(shape) is not None
        return fits

    def note(self, job: Job, units: Units) -> None:
        """Notes that a job starts in this round.

        Args:
            job: The job.
            units: What it gets.
        """
        until = job.owner, stays_until(self._state, job)
        self._holders().update(dict.fromkeys(units.gpus, until))

    def forget(self) -> None:
        """Drops what was found of a pool that changes now."""
        self._pools.clear()
        self._fits.clear()
        self._own_pools.clear()
        self._kept.clear()

    def warning(self, job: Job, units: Units, pool: Pool) -> str:
        """Says with a grant when its GPUs may be taken for a booking.

        Args:
            job: A job that starts.
            units: What it gets.
            pool: What is free in this round.

        Returns:
            The end of a sentence; empty where no booking comes before the job's end.
        """
        if not units.gpus:
            return ""
        end = expected_end(self._state, job)
        until = self._state.at + LOOK_AHEAD_S if end is None else end
        start = self.takes_from(job, units, min(self._reach(until), _TOLD), pool)
        if start is None:
            return ""
        owner, in_s = self._owner(start.booking), spell_seconds(start.at - self._state.at)
        if stopping_step(job.request) is not None:
            return f"; in {in_s} it gives way to a booking of uid {owner} if it still runs"
        does = "is stopped" if self._settings.booking_stops else "is asked to end"
        return f"; in {in_s} it {does} for a booking of uid {owner} if it still runs"

    def takes_from(self, job: Job, units: Units, reach: int, pool: Pool) -> Start | None:
        """Finds the first booking that would lack GPUs if a job still held its units then.

        Args:
            job: A job that holds nothing yet.
            units: What it would get.
            reach: How many of the starts to look at.
            pool: What is free in this round.
        """
        held = dict.fromkeys(units.gpus, job.owner)
        for start in self._known_starts[:reach]:
            if len(self._seated(start.at, pool, held)) < len(self._seated(start.at, pool, {})):
                return start
        return None

    def keeps_off(self, job: Job, shape: Shape, pool: Pool) -> Start | None:
        """Finds the booking to come that keeps a job from starting now.

        Args:
            job: A waiting job.
            shape: What it asks for.
            pool: What is free in this round.

        Returns:
            The first such; None where it is not bookings to come that it waits for.
        """
        key = self._key(job)
        if not shape.gpus or not key.reach or self.place(job, shape, pool) is not None:
            return None
        units = self._pool(_Key(key.owner, 0), pool).place(shape)
        return None if units is None else self.takes_from(job, units, key.reach, pool)

    def _owner(self, booking: BookingId) -> Uid:
        return self._state.bookings[booking].booking.owner

    def _key(self, job: Job) -> _Key:
        owner = job.owner if job.owner in self._owners else None
        if stopping_step(job.request) is not None:
            return _Key(owner, 0)
        end = expected_end(self._state, job)
        if end is not None:
            return _Key(owner, self._reach(end))
        if self._shadowed is None:
            self._shadowed = self._reach(self._state.at + self._settings.booking_shadow_s)
        return _Key(owner, self._shadowed)

    def _reach(self, until: Seconds) -> int:
        """Counts the starts before a time, in order; learns them as they are asked for."""
        known = self._known_starts
        until = min(until, self._state.at + LOOK_AHEAD_S)
        while not known or known[-1].at < until:
            start = next(self._coming, None)
            if start is None:
                break
            if not known or start.at > known[-1].at:
                known.append(start)
        return sum(start.at < until for start in known)

    def _starts(self) -> Iterator[Start]:
        return merge(*(self._starts_of(one.booking) for one in self._state.bookings.values()))

    def _starts_of(self, booking: Booking) -> Iterator[Start]:
        for span in spans(booking, self._state.at):
            if span.start_at > self._state.at:
                yield Start(span.start_at, booking.id)

    def _pool(self, key: _Key, pool: Pool) -> Pool:
        found = self._pools.get(key)
        if found is None:
            kept = self._keep(key, pool)
            closed = [gpu for gpu, one in self._open.items() if self._owner(one) != key.owner]
            shut = dict.fromkeys([*closed, *kept])
            found = self._pools[key] = pool.copy()
            found.restrict(lambda gpu: gpu not in shut)
        return found

    def _keep(self, key: _Key, pool: Pool) -> dict[DeviceId, None]:
        """Chooses GPUs for bookings of others to come, the same for as many as possible."""
        kept: dict[DeviceId, None] = {}
        for number in range(key.reach):
            at, known = self._known_starts[number].at, self._kept.get((key.owner, number))
            if known is None:
                seated = self._seated(at, pool, {}, kept)
                more = [gpu for gpu, owner in seated.items() if owner != key.owner]
                known = self._kept[key.owner, number] = kept | dict.fromkeys(more)
            kept = known
        return kept

    def _seated(
        self,
        at: Seconds,
        pool: Pool,
        held: Mapping[DeviceId, Uid],
        first: Mapping[DeviceId, None] | None = None,
    ) -> dict[DeviceId, Uid]:
        """Gives the GPUs of a time to come to the bookings that are on then.

        Args:
            at: The time.
            pool: What is free now.
            held: What a job would still hold then, and its owner.
            first: GPUs to give before others.
        """
        if self._ranked is None:
            self._ranked = gpus_in_service(self._state)[::-1]
        stays = self._holders()

        def is_left(gpu: Device, owner: Uid) -> bool:
            if held.get(gpu.id, owner) != owner:
                return False
            holder, until = stays.get(gpu.id, (owner, at))
            return holder == owner or until <= at

        preferred, owners = first or {}, self._owners
        serving = [
            gpu
            for gpu in self._ranked
            if gpu.id not in stays or stays[gpu.id][0] in owners or stays[gpu.id][1] <= at
        ]
        # Those that are not free now cost nobody anything; of the others jobs take the first ones.
        ranked = sorted(serving, key=lambda gpu: (gpu.id not in preferred, pool.is_free(gpu.id)))
        demands = self._demands(at)
        given = seat(demands, ranked, is_left)
        return {gpu: demands[number].owner for gpu, number in given.items()}

    def _demands(self, at: Seconds) -> list[Demand]:
        """Lists what the bookings need that are on at a time to come."""
        opened: dict[BookingId, dict[DeviceId, None]] = {}
        for gpu, booking_id in self._open.items():
            opened.setdefault(booking_id, {})[gpu] = None
        demands = []
        for one in self._state.bookings.values():
            span = span_at(one.booking, at)
            if span is None:
                continue
            if span.start_at == one.start_at and one.start_at <= self._state.at:
                gpus = opened.get(one.booking.id, {})
                demands.append(Demand(one.booking.owner, len(gpus), partial(_is_among, gpus)))
            else:
                demands.append(
                    Demand(one.booking.owner, one.booking.size, partial(suits, one.booking))
                )
        return demands

    def _holders(self) -> dict[DeviceId, tuple[Uid, Seconds]]:
        if self._stays is None:
            self._stays = {}
            for holder in self._state.leases.values():
                job = self._state.jobs[holder]
                if job.grant is not None and job.id not in self._leaving:
                    until = stays_until(self._state, job)
                    for gpu in job.grant.units.gpus:
                        owner, others = self._stays.get(gpu, (job.owner, until))
                        one = owner if owner == job.owner else _MANY  # They share it.
                        self._stays[gpu] = one, max(until, others)
        return self._stays
