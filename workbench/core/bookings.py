"""What the calendar calls for: bookings begin, jobs are warned and give way, unused ones end.

Read `calendar` first, then this; `seating` chooses GPUs, `guard` keeps jobs off them.

Nobody is stopped for a booking within `Settings.booking_warn_s` of the warning. One that was made
at short notice gets GPUs that are free, and those of jobs that give way, at its start, and the
others when that time is over.
"""

from __future__ import annotations

from workbench.core.calendar import Booked, BookingId, Overstay, Span
from workbench.core.decisions import (
    Decision,
    OpenBooking,
    Preempt,
    ReleaseBooking,
    Stop,
    WarnOverstay,
    WarnUnused,
)
from workbench.core.job import Job, stopping_step
from workbench.core.model import (
    DeviceId,
    DeviceStatus,
    JobId,
    JobState,
    LeaseId,
    Outcome,
    Seconds,
)
from workbench.core.seating import choose, is_gone, is_particular
from workbench.core.settings import Settings
from workbench.core.spelling import count, spell_seconds
from workbench.core.state import State


def next_time(state: State, settings: Settings) -> Seconds | None:
    """Says when time alone makes the calendar call for something.

    Args:
        state: The state; it is not changed.
        settings: The lab's rules.

    Returns:
        When, after now; None for never.
    """
    times: list[Seconds] = []
    for one in state.bookings.values():
        times.append(one.end_at)
        if one.is_released:
            continue
        if not one.is_open:
            times += [one.start_at - settings.booking_warn_s, one.start_at]
        if one.unused_since is not None and settings.booking_unused_s is not None:
            times.append(one.unused_since + settings.booking_unused_s / 2)
        if one.release_at is not None:
            times.append(one.release_at)
        for overstay in one.overstays:
            times += [overstay.at_latest, overstay.at_latest + _notice_s(settings)]
    return min((at for at in times if at > state.at), default=None)


class Look:
    """One look at the calendar.

    Args:
        state: The state; it is not changed.
        settings: The lab's rules.
        leaving: Jobs that are on their way out for other reasons.
        number: The id of the first decision.
    """

    def __init__(
        self,
        state: State,
        settings: Settings,
        leaving: dict[JobId, tuple[Outcome, str]],
        number: int,
    ) -> None:
        self.decisions: list[Decision] = []
        """To commit in this order."""
        self.open: dict[DeviceId, BookingId] = dict(state.booked)
        """The open booking of each GPU that is booked from now on."""
        self.leaving = dict(leaving)
        """Jobs that are on their way out, those that give way to bookings among them."""
        self._state = state
        self._settings = settings
        self._number = number
        self._claims: dict[DeviceId, list[Span]] = {}

    def look(self) -> None:
        """Finds what is called for now."""
        at = self._state.at + self._settings.booking_warn_s
        due = [
            one
            for one in self._state.bookings.values()
            if one.start_at <= at and not one.is_released
        ]
        for one in due:
            if one.is_open and not self._release(one):
                self._claim(one, one.gpus)
        due.sort(key=lambda one: (one.start_at, not is_particular(one.booking), one.number))
        for one in due:
            if not one.is_open:
                self._see(one)
            elif any(self.open.get(gpu) == one.booking.id for gpu in one.gpus):
                self._clear(one, one.gpus)

    def _see(self, booked: Booked) -> None:
        """Opens a booking that begins, and looks where one that is about to would."""
        taken = [gpu for gpu, spans in self._claims.items() if _is_among(booked, spans)]
        gpus = choose(self._state, booked, taken)
        self._claim(booked, gpus)
        if booked.start_at <= self._state.at:
            self._open(booked, gpus)
        self._clear(booked, gpus)

    def _claim(self, booked: Booked, gpus: tuple[DeviceId, ...]) -> None:
        for gpu in gpus:
            self._claims.setdefault(gpu, []).append(Span(booked.start_at, booked.end_at))

    def _open(self, booked: Booked, gpus: tuple[DeviceId, ...]) -> None:
        booking = booked.booking
        reason = f"{_name(booked)} begins"
        if len(gpus) < booking.size:
            reason += f" with {len(gpus)} of {count(booking.size, 'GPU')}: no more suit it"
        out = [gpu for gpu in gpus if not self._is_available(gpu)]
        if out:
            why = self._state.devices[out[0]].reason
            reason += f"; {len(out)} of its GPUs cannot be leased now ({why})"
        self.decisions.append(
            OpenBooking(
                id=self._next(),
                at=self._state.at,
                booking=booking.id,
                start_at=booked.start_at,
                gpus=gpus,
                reason=reason,
            )
        )
        self.open.update(dict.fromkeys(gpus, booking.id))

    def _clear(self, booked: Booked, gpus: tuple[DeviceId, ...]) -> None:
        """Warns jobs that hold a booking's GPUs, and from its start on makes them give way."""
        state = self._state
        leases = dict.fromkeys(lease for gpu in gpus for lease in state.leases_on(gpu))
        for lease in leases:
            job = state.jobs[state.leases[lease]]
            if job.owner == booked.booking.owner or job.id in self.leaving:
                continue
            if not self._can_be_told(job):
                continue
            known = [one for one in booked.overstays if one.lease == lease]
            if not known and state.at < booked.start_at and is_gone(state, job, booked.start_at):
                continue
            overstay = known[0] if known else self._warn(booked, lease, job)
            if booked.start_at <= state.at:
                self._act(booked, overstay, job)

    def _can_be_told(self, job: Job) -> bool:
        """Whether it runs, or is about to; its grant told a job that is granted units right now."""
        if job.state is JobState.STARTING and job.grant is not None:
            return job.grant.at < self._state.at
        return job.state in {JobState.RUNNING, JobState.SHRINKING}

    def _warn(self, booked: Booked, lease: LeaseId, job: Job) -> Overstay:
        state, settings = self._state, self._settings
        at_latest = max(booked.start_at, state.at)
        does = "it is asked to end"
        if stopping_step(job.request) is not None:
            does = "it gives way"
        elif settings.booking_stops:
            at_latest = max(booked.start_at, state.at + settings.booking_warn_s)
            at_latest += settings.booking_grace_s
            does = "it is stopped"
        when = f"in {spell_seconds(at_latest - state.at)}" if at_latest > state.at else "now"
        reason = f"its GPUs are booked by uid {booked.booking.owner}: {does} {when}"
        self.decisions.append(
            WarnOverstay(
                id=self._next(),
                at=state.at,
                lease=lease,
                job=job.id,
                booking=booked.booking.id,
                at_latest=at_latest,
                reason=reason,
            )
        )
        return Overstay(lease, at_latest)

    def _act(self, booked: Booked, overstay: Overstay, job: Job) -> None:
        """Makes a warned job give way, or stops it where it gives way to nobody."""
        at, lease = self._state.at, overstay.lease
        reason = f"its GPUs are booked by uid {booked.booking.owner}"
        step = stopping_step(job.request)
        if step is not None and job.state is not JobState.STARTING:
            decision: Decision = Preempt(
                id=self._next(),
                at=at,
                lease=lease,
                job=job.id,
                step=step,
                winner=None,
                reason=reason,
                booking=booked.booking.id,
            )
        elif self._settings.booking_stops and self._stop_at(overstay, job) <= at:
            reason += ", and it was warned"
            decision = Stop(
                id=self._next(),
                at=at,
                lease=lease,
                job=job.id,
                outcome=Outcome.KILLED,
                reason=reason,
            )
        else:
            return
        self.decisions.append(decision)
        self.leaving[job.id] = (Outcome.KILLED, reason)

    def _stop_at(self, overstay: Overstay, job: Job) -> Seconds:
        """Says when a warned job may be stopped: one that gives way has first to be running."""
        gives_way = stopping_step(job.request) is not None
        wait_s = _notice_s(self._settings) if gives_way else 0.0
        return overstay.at_latest + wait_s

    def _release(self, booked: Booked) -> bool:
        """Warns the owner of an unused booking, or gives it back; returns whether it did that."""
        state, unused_s = self._state, self._settings.booking_unused_s
        since, at, booking = booked.unused_since, state.at, booked.booking
        if since is None or unused_s is None or not self._can_be_used(booked):
            return False
        unused = (
            f"no job of uid {booking.owner} used {_name(booked)} for {spell_seconds(at - since)}"
        )
        if booked.release_at is None:
            if since + unused_s / 2 <= at:
                release_at = max(since + unused_s, at + unused_s / 2)
                reason = f"{unused}; it is released in {spell_seconds(release_at - at)}"
                self.decisions.append(
                    WarnUnused(
                        id=self._next(),
                        at=at,
                        booking=booking.id,
                        release_at=release_at,
                        reason=reason,
                    )
                )
            return False
        if booked.release_at > at:
            return False
        self.decisions.append(
            ReleaseBooking(id=self._next(), at=at, booking=booking.id, reason=unused)
        )
        for gpu in booked.gpus:
            del self.open[gpu]
        return True

    def _can_be_used(self, booked: Booked) -> bool:
        """Whether it is the owner who leaves the GPUs idle, and nobody who is in the way."""
        return (
            self._state.held is None
            and not any(self._state.leases_on(gpu) for gpu in booked.gpus)
            and any(self._is_available(gpu) for gpu in booked.gpus)
        )

    def _is_available(self, gpu: DeviceId) -> bool:
        return self._state.devices[gpu].status is DeviceStatus.AVAILABLE

    def _next(self) -> int:
        return self._number + len(self.decisions)


def _notice_s(settings: Settings) -> Seconds:
    return settings.booking_warn_s + settings.booking_grace_s


def _is_among(booked: Booked, spans: list[Span]) -> bool:
    """Whether a booking overlaps one of these."""
    return any(one.start_at < booked.end_at and booked.start_at < one.end_at for one in spans)


def _name(booked: Booked) -> str:
    name = booked.booking.name
    return f"the booking {name!r}" if name else "the booking"
