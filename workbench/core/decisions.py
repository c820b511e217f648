"""What the core wants done. Each has a monotone `id`, the time it was taken and a reason."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.core.calendar import BookingId
from workbench.core.model import (
    DeviceId,
    JobId,
    LeaseId,
    Outcome,
    Preemption,
    PriorityClass,
    Seconds,
    Units,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Lease these units to this job and start it; confirmed by `LeaseStarted`.

    Attributes:
        is_settled: Whether it waited past the bound, so that it gives way to nobody any more.
        counts_as: The class that it runs in; None for the one that it asked for.
    """

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    units: Units
    reason: str
    is_settled: bool = False
    counts_as: PriorityClass | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End the job's process tree; confirmed by `LeaseEnded`. `outcome` is what the job gets."""

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """Take the units of a running job and queue it again; confirmed by `LeaseEnded`.

    Attributes:
        step: CHECKPOINT keeps what the job has done so far, REQUEUE starts it again from nothing.
        winner: The job that gets the units; None where they are booked.
        booking: The booking that gets the GPUs; None where a job does.
    """

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    step: Preemption
    winner: JobId | None
    reason: str
    booking: BookingId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrink:
    """Have a running job give some GPUs back at a task boundary; confirmed by `LeaseShrunk`.

    Attributes:
        gpus: Those that it gives back.
        winner: The job that gets them.
    """

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    gpus: tuple[DeviceId, ...]
    winner: JobId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grow:
    """Give a job that was shrunk GPUs, which are its own from now on; confirmed by `LeaseGrown`.

    Attributes:
        gpus: What is added.
    """

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    gpus: tuple[DeviceId, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """Have a running job's processes stand still; confirmed by `LeaseSuspended`.

    Its cores come free then, its memory and its GPUs do not.

    Attributes:
        winner: The job that gets the cores.
    """

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    winner: JobId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Have a suspended job go on, with cores that are its own again; confirmed by `LeaseResumed`.

    Attributes:
        cores: As many as it was granted.
        is_settled: Whether it waited past the bound, so that it gives way to nobody any more.
    """

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    cores: int
    reason: str
    is_settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A job that never started leaves the queue; nothing needs to confirm it."""

    id: int
    at: Seconds
    job: JobId
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warn:
    """Tell the owner of a running job that its use fell; nothing needs to confirm it.

    Attributes:
        until: If use is still low then, the job is lowered.
    """

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    reason: str
    until: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Lower:
    """A running job counts as one class lower from now on; nothing needs to confirm it."""

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """A lowered job counts as its own class again; nothing needs to confirm it."""

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBooking:
    """A booking begins: from now on only its owner's jobs get these GPUs. Confirmed by nothing.

    Attributes:
        start_at: When it was to begin, this time.
        gpus: Fixed until it ends.
    """

    id: int
    at: Seconds
    booking: BookingId
    start_at: Seconds
    gpus: tuple[DeviceId, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarnOverstay:
    """Tell the owner of a job that it holds GPUs that somebody else booked.

    Attributes:
        at_latest: When it has to be over; then it is preempted or stopped.
    """

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    booking: BookingId
    at_latest: Seconds
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarnUnused:
    """Tell the owner of a booking that none of their jobs uses it.

    Attributes:
        release_at: When it is released if that stays so.
    """

    id: int
    at: Seconds
    booking: BookingId
    release_at: Seconds
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseBooking:
    """Nobody used a booking: its GPUs are for all again until it recurs. Confirmed by nothing."""

    id: int
    at: Seconds
    booking: BookingId
    reason: str


Step = Shrink | Grow | Suspend | Resume
AboutJob = Grant | Stop | Preempt | Step | End | Warn | Lower | Raise | WarnOverstay
AboutBooking = OpenBooking | WarnUnused | ReleaseBooking
Decision = AboutJob | AboutBooking
