"""What the core knows now. Only `apply` changes it; every record in it is frozen.

Primary facts come first. The derived ones at the end could be computed from them and are kept so
that an event costs no scan; `invariants.check` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.core.history import History
from workbench.core.job import Deadline, Job, served_s
from workbench.core.model import (
    DeviceId,
    DeviceStatus,
    JobId,
    LeaseId,
    Seconds,
    Uid,
)

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
    """A GPU that was seen at least once; it is never forgotten and never renumbered.

    Attributes:
        id: Its UUID.
        model: Its name as the driver spells it.
        memory_bytes: Its memory in all; None where the driver does not say.
        simulated: Constant for a UUID.
        node: The machine that it is in; one and the same on one host.
        status: What the latest event about it said.
        reason: Why it is not handed out; empty while it is available.
    """

    id: DeviceId
    model: str
    memory_bytes: int | None
    simulated: bool
    status: DeviceStatus
    reason: str
    node: str = ""


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


@dataclass(slots=True, kw_only=True)
class State:
    """All that the core knows.

    Attributes:
        at: The time of the latest event; never goes back.
        host: None until the host was seen.
        devices: By UUID, in the order in which they were first seen.
        held: Why no GPU may be handed out; None if it may.
        agents: Owners whose agent is connected, and since when. After a restart of the driver it
            still lists the agents of before, until the driver says that they are lost.
        jobs: Live jobs (none has ended), in the order of submission.
        ended: The `ENDED_JOBS_KEPT` jobs that ended last, the latest at the end.
        cancelling: Live jobs whose cancel was asked for, with the reason, and which are neither
            ended nor being stopped yet; empty once the decisions on an event are committed.
        usage: What each owner used lately, for fair share.
        history: What the finished jobs of this lab teach about those that run.
        next_job: The number of the next job; larger than every job's.
        next_decision: The id of the next decision; larger than every decision's.
        next_lease: The number of the next lease; larger than every lease's.
        leases: Derived. Live leases, in the order of their grants, and the job of each: exactly
            the live jobs that are not QUEUED.
        holders: Derived. The lease of each leased GPU; a GPU has at most one.
        leased_cores: Derived. The sum over live leases; at most the host's when granted.
        leased_memory_bytes: Derived. The sum over live leases; at most the host's when granted.
        yielding: Derived. The jobs that are about to give units to each job, in the order in which
            that was decided.
        suspended: Derived. The SUSPENDED jobs: they wait and hold a lease.
        shrunk: Derived. The RUNNING jobs that have fewer GPUs than they were granted.
        deadlines: Derived, sorted. One for each job with a wait limit that never ran and each
            RUNNING or SHRINKING job with a time limit: the one expires, the other is stopped.
        crossings: Derived, sorted. When each RUNNING job comes to its next level of service.
    """

    at: Seconds = 0.0
    host: Host | None = None
    devices: dict[DeviceId, Device] = field(default_factory=dict)
    held: str | None = None
    agents: dict[Uid, Seconds] = field(default_factory=dict)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    ended: dict[JobId, Job] = field(default_factory=dict)
    cancelling: dict[JobId, str] = field(default_factory=dict)
    usage: dict[Uid, Usage] = field(default_factory=dict)
    history: History = field(default_factory=History)
    next_job: int = 0
    next_decision: int = 0
    next_lease: int = 0
    leases: dict[LeaseId, JobId] = field(default_factory=dict)
    holders: dict[DeviceId, LeaseId] = field(default_factory=dict)
    leased_cores: int = 0
    leased_memory_bytes: int = 0
    yielding: dict[JobId, tuple[JobId, ...]] = field(default_factory=dict)
    suspended: dict[JobId, None] = field(default_factory=dict)
    shrunk: dict[JobId, None] = field(default_factory=dict)
    deadlines: list[Deadline] = field(default_factory=list)
    crossings: list[Deadline] = field(default_factory=list)

    @property
    def waiting_jobs(self) -> int:
        """How many jobs wait, suspended ones included."""
        return len(self.jobs) - len(self.leases) + len(self.suspended)

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

    Args:
        state: The state; it is not changed.
        job: Any live job.

    Returns:
        A time that is not before now; None if nobody said how long it runs.
    """
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
