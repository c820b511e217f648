"""What the core wants done. Each has a monotone `id`, the time it was taken and a reason."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.core.model import JobId, LeaseId, Outcome, Preemption, PriorityClass, Seconds, Units


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
class End:
    """A job that never started leaves the queue; nothing needs to confirm it."""

    id: int
    at: Seconds
    job: JobId
    outcome: Outcome
    reason: str


Decision = Grant | Stop | Preempt | End
