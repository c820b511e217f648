"""What the core knows now. Only `apply` changes it; every record in it is frozen.

Primary facts come first. The derived ones at the end could be computed from them and are kept so
that an event costs no scan; `invariants.check` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.core.decisions import Grant, Stop
from workbench.core.model import (
    DeviceId,
    DeviceStatus,
    JobId,
    JobState,
    LeaseId,
    Outcome,
    Request,
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
        status: What the latest event about it said.
        reason: Why it is not handed out; empty while it is available.
    """

    id: DeviceId
    model: str
    memory_bytes: int | None
    simulated: bool
    status: DeviceStatus
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job and how far it got.

    Attributes:
        id: Made by the client.
        owner: Constant.
        request: Constant; it fitted the host when the job was submitted.
        name: For people.
        notebook: Where it was submitted, if in a notebook.
        number: Counts submissions up from 0; smaller came first.
        submitted_at: When it was queued.
        state: Moves only along `transitions.TRANSITIONS`.
        grant: The decision that leased it units; None until then, kept after the end.
        stop: The decision that ends its lease; None unless one was taken.
        started_at: When the agent confirmed the grant; None until then.
        ended_at: None unless it ended.
        outcome: None unless it ended.
        detail: One sentence on how it ended; empty until then and for `DONE`.
    """

    id: JobId
    owner: Uid
    request: Request
    name: str
    notebook: str | None
    number: int
    submitted_at: Seconds
    state: JobState = JobState.QUEUED
    grant: Grant | None = None
    stop: Stop | None = None
    started_at: Seconds | None = None
    ended_at: Seconds | None = None
    outcome: Outcome | None = None
    detail: str = ""


class Deadline(NamedTuple):
    """When time alone changes a job: a waiting one expires, a running one is stopped."""

    at: Seconds
    number: int
    job: JobId


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
        next_job: The number of the next job; larger than every job's.
        next_decision: The id of the next decision; larger than every decision's.
        next_lease: The number of the next lease; larger than every lease's.
        leases: Derived. Live leases, in the order of their grants, and the job of each: exactly
            the jobs that are STARTING, RUNNING or STOPPING.
        holders: Derived. The lease of each leased GPU; a GPU has at most one.
        leased_cores: Derived. The sum over live leases; at most the host's when granted.
        leased_memory_bytes: Derived. The sum over live leases; at most the host's when granted.
        deadlines: Derived, sorted. One for each QUEUED job with a wait limit and each RUNNING job
            with a time limit.
    """

    at: Seconds = 0.0
    host: Host | None = None
    devices: dict[DeviceId, Device] = field(default_factory=dict)
    held: str | None = None
    agents: dict[Uid, Seconds] = field(default_factory=dict)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    ended: dict[JobId, Job] = field(default_factory=dict)
    cancelling: dict[JobId, str] = field(default_factory=dict)
    next_job: int = 0
    next_decision: int = 0
    next_lease: int = 0
    leases: dict[LeaseId, JobId] = field(default_factory=dict)
    holders: dict[DeviceId, LeaseId] = field(default_factory=dict)
    leased_cores: int = 0
    leased_memory_bytes: int = 0
    deadlines: list[Deadline] = field(default_factory=list)

    def find(self, job: JobId) -> Job | None:
        """Looks a job up among the live and the lately ended ones.

        Args:
            job: Its id.

        Returns:
            The job, or None if the core does not know it (any more).
        """
        return self.jobs.get(job) or self.ended.get(job)


def deadline_of(job: Job) -> Deadline | None:
    """Says when time alone changes this job.

    Args:
        job: Any job.

    Returns:
        The deadline in force in the job's present state; None if there is none.
    """
    limit_s, since = None, None
    if job.state is JobState.QUEUED:
        limit_s, since = job.request.wait_limit_s, job.submitted_at
    elif job.state is JobState.RUNNING:
        limit_s, since = job.request.time_limit_s, job.started_at
    if limit_s is None or since is None:
        return None
    return Deadline(since + limit_s, job.number, job.id)


def lease_id(number: int) -> LeaseId:
    """Names a lease.

    Args:
        number: Counts grants up from 0.

    Returns:
        Its id.
    """
    return LeaseId(f"L{number}")
