"""What the core knows: jobs, requests, units, leases, devices."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, NewType

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
    """Where a job is. What ends in -ING, but RUNNING, is a wish that an event confirms."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    SHRINKING = "shrinking"
    SUSPENDING = "suspending"
    SUSPENDED = "suspended"
    RESUMING = "resuming"
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
    """How a job may be made to give way: the rungs of the ladder, the mildest first."""

    SHRINK = "shrink"
    """It goes on with fewer of its GPUs."""
    SUSPEND = "suspend"
    """Its processes stand still and keep their memory; its cores come free."""
    CHECKPOINT = "checkpoint"
    """It is stopped and later goes on from where it was."""
    REQUEUE = "requeue"
    """It is stopped and later begins again."""


class DeviceStatus(StrEnum):
    """Whether a GPU may be handed out."""

    AVAILABLE = "available"
    LOST = "lost"
    MISSING = "missing"
    BUSY_OUTSIDE = "busy outside"


class After(StrEnum):
    """How the job that another one waits for has to end."""

    OK = "ok"
    """Done."""
    ANY = "any"
    """In any way."""
    FAIL = "fail"
    """In any way but done."""


class Dependency(NamedTuple):
    """A job that has to end first.

    Attributes:
        job: Its id.
        after: How it has to end.
    """

    job: JobId
    after: After


class Array(NamedTuple):
    """Jobs submitted together, of which only so many may run at one time.

    Attributes:
        id: The same for all of them; of one owner.
        at_once: How many may hold a lease at one time; None for any number.
    """

    id: str
    at_once: int | None


class Shape(NamedTuple):
    """What placement looks at in a request; jobs of one shape fit or do not fit together.

    Attributes:
        gpus: GPUs or slices, all at once (a gang).
        gpu_memory_bytes: Memory that each of them must have in all; 0 for any.
        cores: CPU cores.
        memory_bytes: Host memory; 0 for none declared.
        share_bytes: Memory of the one GPU that is leased, which others share; 0 for a whole GPU.
        mig: The profile of the MIG slices that are wanted, such as `1g.10gb`; empty for GPUs.
        models: Models or UUIDs, any of which will do, the preferred first; empty for any.
    """

    gpus: int
    gpu_memory_bytes: int
    cores: int
    memory_bytes: int
    share_bytes: int = 0
    mig: str = ""
    models: tuple[str, ...] = ()


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
        share_bytes: So much memory of one GPU, shared with others who declare theirs; then `gpus`
            is 1. None for a GPU of its own.
        mig: The profile of the MIG slices that `gpus` counts, such as `1g.10gb`; None for GPUs.
        models: GPUs that will do, the preferred first: a part of the model's name in any case,
            or the beginning of a UUID. Empty for any.
        alternatives: What else will do, the preferred first, where nothing better is free.
        time_limit_s: Seconds after which the job is stopped; None for no limit.
        wait_limit_s: Seconds after which a job that never ran leaves the queue; None for never.
        expected_s: How long it likely runs, as its user or a forecast says; None is unknown. Only
            orders jobs; nothing is stopped for it.
        preemption: How it may be made to give way to another job; empty for not at all.
        min_gpus: It starts with `gpus` and may go on with so many of them, where SHRINK is among
            `preemption`; None for all.
        start_after_s: So long after its submission it waits at least; None for not at all.
        is_held: Whether it waits until its owner releases it.
        after: Jobs of any owner that have to end first. One that then can never start ends.
        array: The array that it belongs to.
        retries: How often it starts again if it fails, is killed or is lost.
        retry_delay_s: How long it then waits; twice as long each time, up to an hour.
    """

    kind: JobKind = JobKind.CELL
    priority: PriorityClass = PriorityClass.NORMAL
    gpus: int = 0
    cores: int = 1
    memory_bytes: int | None = None
    gpu_memory_bytes: int | None = None
    share_bytes: int | None = None
    mig: str | None = None
    models: tuple[str, ...] = ()
    alternatives: tuple[Shape, ...] = ()
    time_limit_s: Seconds | None = None
    wait_limit_s: Seconds | None = None
    expected_s: Seconds | None = None
    preemption: tuple[Preemption, ...] = ()
    min_gpus: int | None = None
    start_after_s: Seconds | None = None
    is_held: bool = False
    after: tuple[Dependency, ...] = ()
    array: Array | None = None
    retries: int = 0
    retry_delay_s: Seconds = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """What a lease names.

    Attributes:
        gpus: UUIDs, in the order in which the job sees them.
        cores: CPU cores.
        memory_bytes: Host memory set apart; 0 where the job declared none.
        share_bytes: So much memory of the one GPU; 0 where GPUs are the lease's alone.
    """

    gpus: tuple[DeviceId, ...] = ()
    cores: int = 0
    memory_bytes: int = 0
    share_bytes: int = 0
