"""What the core wants done. Each has a monotone `id`, the time it was taken and a reason."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.core.model import DeviceId, JobId, LeaseId, Outcome, Preemption, Seconds, Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Lease these units to this job and start it; confirmed by `LeaseStarted`.

    Attributes:
        is_settled: Whether it waited past the bound, so that it gives way to nobody any more.
    """

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    units: Units
    reason: str
    is_settled: bool = False


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
    """Take the units of a running job for another and queue it again; confirmed by `LeaseEnded`.

    Attributes:
        step: CHECKPOINT keeps what the job has done so far, REQUEUE starts it again from nothing.
        winner: The job that gets the units.
    """

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    step: Preemption
    winner: JobId
    reason: str


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


Decision = Grant | Stop | Preempt | Shrink | Grow | Suspend | Resume | End
