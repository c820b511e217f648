"""What the core knows: jobs, requests, units, leases, devices."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

JobId = NewType("JobId", str)
"""128 random bits in hexadecimal, made by the client, so that a submission is idempotent."""
LeaseId = NewType("LeaseId", str)
"""`L` and a number that the core counts up; never used twice in a journal's life."""
DeviceId = NewType("DeviceId", str)
"""A GPU's UUID as NVML spells it (`GPU-…`), or `SIM-…` for a simulated one."""
Uid = NewType("Uid", int)
"""A Linux user id, as the kernel reports it for a socket's peer."""
Seconds = float
"""Time on the lab's clock (`at`), or a span of it."""


class PriorityClass(StrEnum):
    """Strict classes: a waiting job of a higher class is always considered first."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class JobKind(StrEnum):
    """What a user submits."""

    CELL = "cell"
    NOTEBOOK = "notebook"
    COMMAND = "command"
    KERNEL = "kernel"


class JobState(StrEnum):
    """Where a job is. STARTING, PREEMPTING and STOPPING are wishes that an event confirms."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    PREEMPTING = "preempting"
    STOPPING = "stopping"
    ENDED = "ended"


class Outcome(StrEnum):
    """How a job ended."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    KILLED = "killed"
    LOST = "lost"
    EXPIRED = "expired"


class Preemption(StrEnum):
    """How a job may be made to give way; the mildest first."""

    CHECKPOINT = "checkpoint"
    REQUEUE = "requeue"


class DeviceStatus(StrEnum):
    """Whether a GPU may be handed out."""

    AVAILABLE = "available"
    LOST = "lost"
    MISSING = "missing"
    BUSY_OUTSIDE = "busy outside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a job asks for.

    Attributes:
        kind: What the job is.
        priority: Its class.
        gpus: Whole GPUs, all at once (a gang); 0 for none.
        cores: CPU cores, at least 1.
        memory_bytes: Host memory; None where the user declared none (then none is set apart).
        gpu_memory_bytes: Memory that each GPU must have in all; None for any.
        time_limit_s: Seconds after which the job is stopped; None for no limit.
        wait_limit_s: Seconds after which a job that never ran leaves the queue; None for never.
        expected_s: How long it likely runs, as its user or a forecast says; None is unknown. Only
            orders jobs; nothing is stopped for it.
        preemption: How it may be made to give way to another job; empty for not at all.
    """

    kind: JobKind = JobKind.CELL
    priority: PriorityClass = PriorityClass.NORMAL
    gpus: int = 0
    cores: int = 1
    memory_bytes: int | None = None
    gpu_memory_bytes: int | None = None
    time_limit_s: Seconds | None = None
    wait_limit_s: Seconds | None = None
    expected_s: Seconds | None = None
    preemption: tuple[Preemption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """What a lease names.

    Attributes:
        gpus: UUIDs, in the order in which the job sees them.
        cores: CPU cores.
        memory_bytes: Host memory set apart; 0 where the job declared none.
    """

    gpus: tuple[DeviceId, ...] = ()
    cores: int = 0
    memory_bytes: int = 0
