"""What the core knows now. Only `apply` changes it; every record in it is frozen.

Primary facts come first. The derived ones at the end could be computed from them and are kept so
that an event costs no scan; `invariants.check` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from workbench.core.calendar import Booked, BookingId
from workbench.core.history import History
from workbench.core.job import Deadline, Job, forecast_left_s, served_s
from workbench.core.model import (
    DeviceId,
    DeviceStatus,
    JobId,
    LeaseId,
    Seconds,
    Uid,
)

HALF_LIFE_S: Final = 7 * 24 * 3600.0
CORE_WEIGHT: Final = 1 / 16
THIS_HOST = ""
"""The node of a lab of one host; cores and host memory are there in any lab."""
ENDED_JOBS_KEPT = 1000
"""A job submitted again after this many others have ended would count as a new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the host has to lease besides GPUs.

    Attributes:
        cores: CPU cores, at least 1.
        memory_bytes: Host memory, more than 0.
    """

    cores: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU or MIG slice that was seen at least once; never forgotten and never renumbered.

    Attributes:
        id: Its UUID.
        model: Its name as the driver spells it.
        memory_bytes: Its memory in all; None where the driver does not say.
        simulated: Constant for a UUID.
        node: The machine that it is in; one and the same on one host.
        status: What the latest event about it said.
        reason: Why it is not handed out; empty while it is available.
        mig: Its profile; empty for a whole GPU. Constant for a UUID.
        parent: The GPU that it is a slice of, where that is known. Constant for a UUID.
        island: Those of one node and island are joined closely; empty is unknown.
    """

    id: DeviceId
    model: str
    memory_bytes: int | None
    simulated: bool
    status: DeviceStatus
    reason: str
    node: str = THIS_HOST
    mig: str = ""
    parent: DeviceId | None = None
    island: str = ""


class Sharer(NamedTuple):
    """A lease on a part of a GPU's memory."""

    lease: LeaseId
    share_bytes: int


class Usage(NamedTuple):
    """What an owner has used, decayed; `fairness` reads and changes it.

    Attributes:
        weighted_s: Decayed GPU-seconds (cores count by their weight) at the time `at`.
        at: When it was reckoned.
        rate: GPUs (cores by their weight) that the owner holds since then.
    """

    weighted_s: float
    at: Seconds
    rate: float


class Tally(NamedTuple):
    """What a user or a group holds and has spent; `quotas` reads and changes it.

    Attributes:
        leases: Live leases.
        gpus: GPUs of these.
        at: When `days` was reckoned.
        days: GPU-seconds spent until then on each of the latest days of the lab's clock, the
            number of the day first.
    """

    leases: int = 0
    gpus: int = 0
    at: Seconds = 0.0
    days: tuple[tuple[int, float], ...] = ()


@dataclass(slots=True, kw_only=True)
class State:
    """All that the core knows.

    Attributes:
        at: The time of the latest event; never goes back.
        host: None until the host was seen.
        devices: By UUID, in the order in which they were first seen.
        held: Why no GPU may be handed out; None if it may.
        drained: Nodes on which nothing new starts, and why. `THIS_HOST` stands for all of it.
        agents: Owners whose agent is connected, and since when. After a restart of the driver it
            still lists the agents of before, until the driver says that they are lost.
        jobs: Live jobs (none has ended), in the order of submission.
        ended: The `ENDED_JOBS_KEPT` jobs that ended last, the latest at the end.
        cancelling: Live jobs whose cancel was asked for, or which wait for a job that did not end
            as they need it, with the reason. They are neither ended nor being stopped yet; empty
            once the decisions on an event are committed.
        usage: What each owner used lately, for fair share.
        half_life_s: How long it takes until use counts half.
        core_weight: So many GPUs is a core of a lease that holds no GPU, for fair share.
        users: What each owner holds and spent, for quotas.
        groups: What each group holds and spent, for quotas.
        high: What each owner holds and spent in the class `high`, for its budget.
        arrays: Derived. The number of live leases of each array that has any, by owner.
        history: What the finished jobs of this lab teach about those that run.
        bookings: Those that are on or still to come, in the order in which they were made; none is
            over. Each is as it is the time that is on or comes next.
        next_booking: The number of the next booking; larger than every booking's.
        next_job: The number of the next job; larger than every job's.
        next_decision: The id of the next decision; larger than every decision's.
        next_lease: The number of the next lease; larger than every lease's.
        leases: Derived. Live leases, in the order of their grants, and the job of each: exactly
            the live jobs that are not QUEUED.
        holders: Derived. The lease of each GPU or slice that is leased to one job alone.
        sharers: Derived. The leases of each GPU of which parts are leased, in the order of their
            grants; together at most its memory less a margin when granted. None of them is in
            `holders`.
        slices: Derived. The slices of each GPU that was ever split, as they were first seen.
        leased_cores: Derived. The sum over live leases; at most the host's when granted.
        leased_memory_bytes: Derived. The sum over live leases; at most the host's when granted.
        dependents: Derived. Those that wait for each live job to end, in the order of submission.
        yielding: Derived. The jobs that are about to give units to each job, in the order in which
            that was decided.
        suspended: Derived. The SUSPENDED jobs: they wait and hold a lease.
        shrunk: Derived. The RUNNING jobs that have fewer GPUs than they were granted.
        deadlines: Derived, sorted. One for each job with a wait limit that never ran and each
            RUNNING or SHRINKING job with a time limit: the one expires, the other is stopped.
        crossings: Derived, sorted. When each RUNNING job comes to its next level of service.
        booked: Derived. The open booking of each GPU that only its owner's jobs may get now.
        booking_ends_at: Derived. When the first of the bookings ends, this time; None if there is
            none.
    """

    at: Seconds = 0.0
    host: Host | None = None
    devices: dict[DeviceId, Device] = field(default_factory=dict)
    held: str | None = None
    drained: dict[str, str] = field(default_factory=dict)
    agents: dict[Uid, Seconds] = field(default_factory=dict)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    ended: dict[JobId, Job] = field(default_factory=dict)
    cancelling: dict[JobId, str] = field(default_factory=dict)
    half_life_s: Seconds = HALF_LIFE_S
    core_weight: float = CORE_WEIGHT
    usage: dict[Uid, Usage] = field(default_factory=dict)
    users: dict[Uid, Tally] = field(default_factory=dict)
    groups: dict[str, Tally] = field(default_factory=dict)
    high: dict[Uid, Tally] = field(default_factory=dict)
    arrays: dict[Uid, dict[str, int]] = field(default_factory=dict)
    history: History = field(default_factory=History)
    bookings: dict[BookingId, Booked] = field(default_factory=dict)
    next_booking: int = 0
    next_job: int = 0
    next_decision: int = 0
    next_lease: int = 0
    leases: dict[LeaseId, JobId] = field(default_factory=dict)
    holders: dict[DeviceId, LeaseId] = field(default_factory=dict)
    sharers: dict[DeviceId, tuple[Sharer, ...]] = field(default_factory=dict)
    slices: dict[DeviceId, tuple[DeviceId, ...]] = field(default_factory=dict)
    leased_cores: int = 0
    leased_memory_bytes: int = 0
    dependents: dict[JobId, tuple[JobId, ...]] = field(default_factory=dict)
    yielding: dict[JobId, tuple[JobId, ...]] = field(default_factory=dict)
    suspended: dict[JobId, None] = field(default_factory=dict)
    shrunk: dict[JobId, None] = field(default_factory=dict)
    deadlines: list[Deadline] = field(default_factory=list)
    crossings: list[Deadline] = field(default_factory=list)
    booked: dict[DeviceId, BookingId] = field(default_factory=dict)
    booking_ends_at: Seconds | None = None

    @property
    def waiting_jobs(self) -> int:
        """How many jobs wait, suspended ones included."""
        return len(self.jobs) - len(self.leases) + len(self.suspended)

    def leases_on(self, gpu: DeviceId) -> list[LeaseId]:
        """Lists the leases that have a GPU or a share of it.

        Args:
            gpu: Its UUID.
        """
        if gpu in self.holders:
            return [self.holders[gpu]]
        return [sharer.lease for sharer in self.sharers.get(gpu, ())]

    def find(self, job: JobId) -> Job | None:
        """Looks a job up among the live and the lately ended ones.

        Args:
            job: Its id.

        Returns:
            The job, or None if the core does not know it (any more).
        """
        return self.jobs.get(job) or self.ended.get(job)


def expected_end(state: State, job: Job) -> Seconds | None:
    """Says when a job likely ends, if it runs or were to start now.

    What it says of its progress counts for more than what was declared, but no job outlives its
    time limit.

    Args:
        state: The state; it is not changed.
        job: Any live job.

    Returns:
        A time that is not before now; None if nobody said how long it runs.
    """
    left_s = None if job.progress is None else forecast_left_s(job, state.at)
    if left_s is not None:
        limit_s = job.request.time_limit_s
        if limit_s is not None:
            left_s = min(left_s, max(limit_s - served_s(job, state.at), 0.0))
        return state.at + left_s
    spans = [
        span for span in (job.request.expected_s, job.request.time_limit_s) if span is not None
    ]
    if not spans:
        return None
    return state.at + max(min(spans) - served_s(job, state.at), 0.0)


def lease_id(number: int) -> LeaseId:
    """Names a lease.

    Args:
        number: Counts grants up from 0.

    Returns:
        Its id.
    """
    return LeaseId(f"L{number}")
