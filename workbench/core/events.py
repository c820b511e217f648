"""Facts that the core is told. Each carries `at`, the lab's clock in seconds."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.core.calendar import Booking, BookingId
from workbench.core.model import DeviceId, JobId, LeaseId, Outcome, Request, Seconds, Uid


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSeen:
    """The host has this many cores and this much memory (bytes) to lease."""

    at: Seconds
    cores: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSeen:
    """A GPU answers: a new one, or one that was lost, missing or busy and is back.

    Attributes:
        memory_bytes: Its memory in all; None where the driver does not say.
        simulated: Never changes for a UUID.
        busy_outside: Who uses it without a lease of ours, so that a GPU that is busy when it is
            first seen is not handed out in between; None where nobody does.
        node: The machine that it is in; a gang that fits on one node is never spread over two.
        mig: The profile of a MIG slice, such as `1g.10gb`; empty for a whole GPU. Never changes
            for a UUID.
        parent: The GPU that it is a slice of, where that is known. Never changes for a UUID.
        island: GPUs of one node and island are joined closely (NVLink, one NUMA node); empty
            where that is unknown.
    """

    at: Seconds
    device: DeviceId
    model: str
    memory_bytes: int | None
    simulated: bool
    busy_outside: str | None = None
    node: str = ""
    mig: str = ""
    parent: DeviceId | None = None
    island: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLost:
    """A GPU that was seen before no longer answers. Not handed out; its lease keeps it."""

    at: Seconds
    device: DeviceId
    missing: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceBusyOutside:
    """A GPU that was seen before is used by a process that no lease of ours explains."""

    at: Seconds
    device: DeviceId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchHeld:
    """No GPU may be handed out for now (a driver mismatch, say); running jobs go on."""

    at: Seconds
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchResumed:
    """GPUs may be handed out again."""

    at: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class FairShareSet:
    """The lab reckons use in this way from now on.

    Attributes:
        half_life_s: How long it takes until use counts half.
        core_weight: So many GPUs is a core of a lease that holds no GPU.
    """

    at: Seconds
    half_life_s: Seconds
    core_weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainStarted:
    """Nothing new starts on a node for now (for maintenance, say); running jobs finish.

    Attributes:
        node: Its name; empty for the host itself, so that nothing starts at all.
        reason: For people. The latest counts.
    """

    at: Seconds
    node: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainEnded:
    """Jobs may start on this node again. Where it was not drained this changes nothing."""

    at: Seconds
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConnected:
    """The agent of this user can start jobs."""

    at: Seconds
    owner: Uid


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLost:
    """The agent of this user is gone; its running jobs may go on without it."""

    at: Seconds
    owner: Uid


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmitted:
    """A user submitted a job. The same job id again with the same request changes nothing.

    Attributes:
        group: Whose quota it counts against, besides its owner's; empty for none.
    """

    at: Seconds
    job: JobId
    owner: Uid
    request: Request
    name: str
    notebook: str | None
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """The job's owner (or its agent) wants it to end. On an ended job this changes nothing."""

    at: Seconds
    job: JobId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRequested:
    """The owner of a waiting job wants it to wait until it is released."""

    at: Seconds
    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequested:
    """The owner of a held job wants it to go on. On a job that is not held this changes nothing."""

    at: Seconds
    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseStarted:
    """The agent confirms a grant: the job runs."""

    at: Seconds
    lease: LeaseId


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseShrunk:
    """No process of the job uses these GPUs any more: they are free.

    Attributes:
        gpus: Those that the core asked for, in any order.
    """

    at: Seconds
    lease: LeaseId
    gpus: tuple[DeviceId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseGrown:
    """The job knows of the GPUs that were added and uses them from now on."""

    at: Seconds
    lease: LeaseId


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSuspended:
    """All processes of the job stand still: its cores are free."""

    at: Seconds
    lease: LeaseId


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseResumed:
    """The processes of a suspended job go on."""

    at: Seconds
    lease: LeaseId


@dataclass(frozen=True, slots=True, kw_only=True)
class UseFell:
    """A lease hardly uses its units. Told on change only, and never for want of figures.

    Attributes:
        part: The mean use of all units leased over the sampler's window, from 0 to 1.
    """

    at: Seconds
    lease: LeaseId
    part: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UseRose:
    """A lease uses its units again; `part` as for `UseFell`. Before any fall it changes nothing."""

    at: Seconds
    lease: LeaseId
    part: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressMade:
    """A job says how far it is; at most once a minute.

    Attributes:
        part: How much of the job is done, from 0 to 1; never falls within a lease.
    """

    at: Seconds
    lease: LeaseId
    part: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseEnded:
    """Nobody is left in the job's process tree; its units are free.

    Attributes:
        outcome: How the process ended; a stop that the core asked for keeps the core's outcome.
        detail: One sentence for people, empty for `DONE`.
    """

    at: Seconds
    lease: LeaseId
    outcome: Outcome
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRebooted:
    """The boot id differs from the journal's: no process of any lease can be alive."""

    at: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingMade:
    """A user booked GPUs, or changed a booking of theirs. The same again changes nothing.

    Attributes:
        is_restated: The driver says when a known booking is now that the wall clock has moved; it
            is not checked against the others, which are restated too.
    """

    at: Seconds
    booking: Booking
    is_restated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingCancelled:
    """The booking's owner gives it back, all its times."""

    at: Seconds
    booking: BookingId
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time has passed; nothing else happened."""

    at: Seconds


Event = (
    HostSeen
    | DeviceSeen
    | DeviceLost
    | DeviceBusyOutside
    | DispatchHeld
    | DispatchResumed
    | FairShareSet
    | DrainStarted
    | DrainEnded
    | AgentConnected
    | AgentLost
    | JobSubmitted
    | CancelRequested
    | HoldRequested
    | ReleaseRequested
    | LeaseStarted
    | LeaseShrunk
    | LeaseGrown
    | LeaseSuspended
    | LeaseResumed
    | UseFell
    | UseRose
    | ProgressMade
    | LeaseEnded
    | HostRebooted
    | BookingMade
    | BookingCancelled
    | Tick
)
