"""What the core wants done. Each has a monotone `id`, the time it was taken and a reason."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.core.model import JobId, LeaseId, Outcome, Seconds, Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Lease these units to this job and start it; confirmed by `LeaseStarted`."""

    id: int
    at: Seconds
    lease: LeaseId
    job: JobId
    units: Units
    reason: str


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
class End:
    """A job that never started leaves the queue; nothing needs to confirm it."""

    id: int
    at: Seconds
    job: JobId
    outcome: Outcome
    reason: str


Decision = Grant | Stop | End
