"""What the core knows now. Only `apply` changes it; every record in it is frozen.

Primary facts come first. The derived ones at the end could be computed from them and are kept so
that an event costs no scan; `invariants.check` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Final, NamedTuple

from workbench.core.decisions import Grant, Preempt, Stop
from workbench.core.history import EDGES_S, RESTART_S, History
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
        submitted_at: When it was queued first.
        queued_at: Since when it waits; later than `submitted_at` if it was preempted.
        served_s: How long its earlier leases ran, in seconds; what a REQUEUE threw away included.
        preemptions: How often it gave way.
        level: Of its service, see `history`; never falls.
        entered_at: When it came to its level.
        is_settled: Whether it waited past the bound, so that it gives way to nobody any more.
        state: Moves only along `transitions.TRANSITIONS`.
        grant: The decision that leased it units; None while it waits, kept after the end.
        stop: The decision that ends it; None unless one was taken.
        preempt: The decision that takes its units; None unless it is PREEMPTING.
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
    queued_at: Seconds
    served_s: Seconds = 0.0
    preemptions: int = 0
    level: int = 0
    entered_at: Seconds = 0.0
    is_settled: bool = False
    state: JobState = JobState.QUEUED
    grant: Grant | None = None
    stop: Stop | None = None
    preempt: Preempt | None = None
    started_at: Seconds | None = None
    ended_at: Seconds | None = None
    outcome: Outcome | None = None
    detail: str = ""


_JOB_SLOTS: Final = tuple(
    (slot.name, Job.__dict__[slot.name].__get__, Job.__dict__[slot.name].__set__)
    for slot in fields(Job)
)


def evolve(job: Job, **changes: object) -> Job:
    """Copies a job with changes; `dataclasses.replace`, at a third of its time.

    Args:
        job: The job; it is not changed.
        changes: New values of its fields.

    Returns:
        The copy.
    """
    after = object.__new__(Job)
    for name, get, put in _JOB_SLOTS:
        put(after, changes[name] if name in changes else get(job))
    return after


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


class Deadline(NamedTuple):
    """When time alone changes a job."""

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
        usage: What each owner used lately, for fair share.
        history: What the finished jobs of this lab teach about those that run.
        next_job: The number of the next job; larger than every job's.
        next_decision: The id of the next decision; larger than every decision's.
        next_lease: The number of the next lease; larger than every lease's.
        leases: Derived. Live leases, in the order of their grants, and the job of each: exactly
            the jobs that are STARTING, RUNNING, PREEMPTING or STOPPING.
        holders: Derived. The lease of each leased GPU; a GPU has at most one.
        leased_cores: Derived. The sum over live leases; at most the host's when granted.
        leased_memory_bytes: Derived. The sum over live leases; at most the host's when granted.
        yielding: Derived. The PREEMPTING jobs of each job that they give way to.
        deadlines: Derived, sorted. One for each job with a wait limit that never ran and each
            RUNNING job with a time limit: the one expires, the other is stopped.
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
    deadlines: list[Deadline] = field(default_factory=list)
    crossings: list[Deadline] = field(default_factory=list)

    @property
    def waiting_jobs(self) -> int:
        """How many jobs wait."""
        return len(self.jobs) - len(self.leases)

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
    if job.state is JobState.QUEUED and not job.preemptions:
        limit_s, since = job.request.wait_limit_s, job.submitted_at
    elif job.state is JobState.RUNNING:
        limit_s, since = job.request.time_limit_s, job.started_at
        limit_s = None if limit_s is None else limit_s - job.served_s
    if limit_s is None or since is None:
        return None
    return Deadline(since + limit_s, job.number, job.id)


def crossing_of(job: Job) -> Deadline | None:
    """Says when a job comes to its next level of service.

    Args:
        job: Any job.

    Returns:
        When; None for one that does not run, or is in the last level.
    """
    if job.started_at is None or job.state is not JobState.RUNNING or job.level >= len(EDGES_S):
        return None
    at = job.started_at + EDGES_S[job.level] - useful_s(job, job.started_at)
    return Deadline(at, job.number, job.id)


def useful_s(job: Job, at: Seconds) -> Seconds:
    """Says how much service a job has had, without what restarts cost it.

    Args:
        job: Any job.
        at: Now.

    Returns:
        Seconds, at least 0.
    """
    served = job.served_s - RESTART_S * job.preemptions
    if job.started_at is not None and job.ended_at is None:
        served += at - job.started_at
    return max(served, 0.0)


def waited_s(job: Job, at: Seconds) -> Seconds:
    """Says how long a job has waited in all, what its restarts cost it included.

    Args:
        job: A waiting job.
        at: Now.

    Returns:
        Seconds, at least 0.
    """
    return at - job.submitted_at - useful_s(job, at)


def served_s(job: Job, at: Seconds) -> Seconds:
    """Says how long a job has run, over all its leases.

    Args:
        job: Any job.
        at: Now.

    Returns:
        Seconds; 0 for one that never started.
    """
    if job.started_at is None or job.ended_at is not None:
        return job.served_s
    return job.served_s + at - job.started_at


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
