"""A job, how far it got, and what follows from that alone. Records are frozen; `evolve` copies."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, NamedTuple

from workbench.core.decisions import Grant, Grow, Preempt, Resume, Shrink, Stop, Suspend
from workbench.core.history import EDGES_S, RESTART_S
from workbench.core.model import JobId, JobState, Outcome, Request, Seconds, Uid, Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """What the milder steps of preemption made of a job's lease.

    At most one of the decisions waits for its confirmation.

    Attributes:
        granted: The lease's units as they were granted: it may grow back to as many GPUs, and goes
            on with as many cores.
        shrink: The decision that takes GPUs; None unless it is not confirmed yet.
        grow: The decision that gave GPUs; likewise.
        suspend: The decision that takes its cores; likewise.
        resume: The decision that gave its cores back; likewise.
        why: What its owner was told when it was shrunk or suspended; empty where it has all again.
    """

    granted: Units
    shrink: Shrink | None = None
    grow: Grow | None = None
    suspend: Suspend | None = None
    resume: Resume | None = None
    why: str = ""

    def at_rest(self) -> Ladder:
        """Returns it without what waits for a confirmation."""
        return Ladder(granted=self.granted, why=self.why)

    @property
    def pending(self) -> Shrink | Grow | Suspend | Resume | None:
        """The decision that an event has still to confirm."""
        return self.shrink or self.grow or self.suspend or self.resume


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
        queued_at: Since when it waits; later than `submitted_at` if it was preempted or suspended.
        served_s: How long it ran until it was preempted or suspended last, in seconds; what a
            REQUEUE threw away included.
        preemptions: How often it gave its lease up for another job.
        level: Of its service, see `history`; never falls.
        entered_at: When it came to its level.
        is_settled: Whether it waited past the bound, so that it gives way to nobody any more.
        state: Moves only along `transitions.TRANSITIONS`.
        grant: The decision that leased it units, with those that it holds now: fewer GPUs where it
            was shrunk, no core while it is suspended. None while it waits, kept after the end.
        stop: The decision that ends it; None unless one was taken.
        preempt: The decision that takes its units; None unless it is PREEMPTING.
        ladder: What milder steps made of its lease; None where it is as it was granted.
        started_at: When the agent confirmed the grant, or last that it goes on; None until then
            and while it is suspended.
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
    ladder: Ladder | None = None
    started_at: Seconds | None = None
    ended_at: Seconds | None = None
    outcome: Outcome | None = None
    detail: str = ""


_TIMED: Final = frozenset({JobState.RUNNING, JobState.SHRINKING})
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


class Deadline(NamedTuple):
    """When time alone changes a job."""

    at: Seconds
    number: int
    job: JobId


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
    elif job.state in _TIMED:
        limit_s, since = job.request.time_limit_s, job.started_at
        limit_s = None if limit_s is None else limit_s - job.served_s
    if limit_s is None or since is None:
        return None
    return Deadline(since + limit_s, job.number, job.id)


def claims_of(job: Job) -> list[Preempt | Shrink | Suspend]:
    """Lists the decisions by which a job is about to give units to others.

    Args:
        job: Any job.

    Returns:
        Those that are not confirmed yet, the earliest first.
    """
    milder = (job.ladder.shrink, job.ladder.suspend) if job.ladder is not None else ()
    return [claim for claim in (*milder, job.preempt) if claim is not None]


def steady_since(job: Job) -> Seconds:
    """Says since when a job runs and nothing was asked of it: its quantum counts from then.

    Args:
        job: A running or suspended job.

    Returns:
        When it started, or was asked to shrink or told that it grew and has not confirmed it yet.
    """
    pending = job.ladder.pending if job.ladder is not None else None
    return (job.started_at or 0.0) if pending is None else pending.at


def is_shrunk(job: Job) -> bool:
    """Tells whether a job has fewer GPUs than it was granted.

    Args:
        job: Any job.
    """
    return (
        job.ladder is not None
        and job.grant is not None
        and len(job.grant.units.gpus) < len(job.ladder.granted.gpus)
    )


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
