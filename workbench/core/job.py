"""A job, how far it got, and what follows from that alone. Records are frozen; `evolve` copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from workbench.core.decisions import Grant, Grow, Preempt, Resume, Shrink, Stop, Suspend
from workbench.core.history import EDGES_S, RESTART_S
from workbench.core.model import (
    JobId,
    JobState,
    Outcome,
    Preemption,
    Request,
    Seconds,
    Uid,
    Units,
)
from workbench.core.use import Progress, Use

_TELLING: Final = 0.05
"""Of a job of which less is done its progress does not tell how long the rest takes."""


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
        group: Its owner's, for quotas; empty for none.
        queued_at: Since when it waits for units; later than `submitted_at` if it was preempted,
            suspended or put off. In the future for one that waits for that time.
        put_off_s: How long it was put off: held, not yet due, or waiting for other jobs.
        put_off_at: Since when it is held or waits for other jobs; None if it does neither.
        is_held: Whether its owner has to release it first.
        waits_for: Live jobs that have to end first.
        failures: How often it started again because it failed.
        served_s: How long it ran until its last lease ended or was suspended last, in seconds;
            what a REQUEUE threw away included.
        preemptions: How often it gave its lease up for another job.
        level: Of its service, see `history`; never falls.
        entered_at: When it came to its level.
        is_settled: Whether it waited past the bound, so that it gives way to nobody any more.
        state: Moves only along `transitions.TRANSITIONS`.
        grant: The decision that leased it units, with those that it holds now: fewer GPUs where it
            was shrunk, no core while it is suspended. None while it waits, kept after the end.
        stop: The decision that ends it; None unless one was taken.
        preempt: The decision that takes its units; None unless it is PREEMPTING, or STOPPING since.
        ladder: What milder steps made of its lease; None where it is as it was granted.
        started_at: When the agent confirmed the grant, or last that it goes on; None until then
            and while it is suspended.
        ended_at: None unless it ended.
        outcome: None unless it ended.
        detail: One sentence on how it ended; empty until then and for `DONE`.
        use: What was told of the use of its lease; None without one, or where nothing was.
        progress: What it said of itself; None where it said nothing, or began again from nothing.
    """

    id: JobId
    owner: Uid
    request: Request
    name: str
    notebook: str | None
    number: int
    submitted_at: Seconds
    queued_at: Seconds
    group: str = ""
    put_off_s: Seconds = 0.0
    put_off_at: Seconds | None = None
    is_held: bool = False
    waits_for: tuple[JobId, ...] = ()
    failures: int = 0
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
    use: Use | None = None
    progress: Progress | None = None


class _Draft:
    """Laid out as a job, but not frozen: what a copy is until it is done."""

    __slots__ = Job.__slots__


def _make_copier() -> Callable[[Job], _Draft]:
    """Writes a function that copies field by field, as `dataclass` writes `__init__`."""
    copies = "; ".join(f"draft.{name} = job.{name}" for name in Job.__slots__)
    scope: dict[str, Any] = {"_Draft": _Draft}
    exec(f"def copy(job): draft = _Draft(); {copies}; return draft", scope)  # noqa: S102
    copy: Callable[[Job], _Draft] = scope["copy"]
    return copy


_copy: Final = _make_copier()


def evolve(job: Job, **changes: object) -> Job:
    """Copies a job with changes; `dataclasses.replace`, at a tenth of its time.

    Args:
        job: The job; it is not changed.
        changes: New values of its fields.

    Returns:
        The copy.
    """
    after: Any = _copy(job)
    for name, value in changes.items():
        setattr(after, name, value)
    after.__class__ = Job
    evolved: Job = after
    return evolved


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
    if job.state is JobState.QUEUED and not job.preemptions and not job.failures:
        if job.put_off_at is None:
            limit_s, since = job.request.wait_limit_s, job.queued_at
    elif job.state is JobState.RUNNING or job.state is JobState.SHRINKING:
        limit_s, since = job.request.time_limit_s, job.started_at
        limit_s = None if limit_s is None else limit_s - job.served_s
    if limit_s is None or since is None:
        return None
    return Deadline(since + limit_s, job.number, job.id)


def stopping_step(request: Request) -> Preemption | None:
    """Says by which step that ends its lease a job gives way.

    Args:
        request: A job's.

    Returns:
        The first of them that it names; None where it allows none that does.
    """
    for step in request.preemption:
        if step is Preemption.CHECKPOINT or step is Preemption.REQUEUE:
            return step
    return None


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
    if served < 0.0:
        return 0.0
    return served


def forecast_left_s(job: Job, at: Seconds) -> Seconds | None:
    """Says how much service is left of a job, if the rest goes as what is done did.

    Args:
        job: Any live job.
        at: Now.

    Returns:
        Seconds, at least 0; None where it has not said enough of its progress.
    """
    if job.progress is None or job.progress.part < _TELLING:
        return None
    spent_s = useful_s(job, at)
    if job.started_at is not None and job.request.preemption == (Preemption.REQUEUE,):
        spent_s = at - job.started_at  # It began this lease from nothing.
    return spent_s / job.progress.part * (1.0 - job.progress.part)


def waited_s(job: Job, at: Seconds) -> Seconds:
    """Says how long a job has waited for units in all, what its restarts cost it included.

    Args:
        job: A waiting job.
        at: Now.

    Returns:
        Seconds, at least 0.
    """
    return at - job.submitted_at - job.put_off_s - useful_s(job, at)


def is_put_off(job: Job, at: Seconds) -> bool:
    """Tells whether a waiting job waits for something other than units.

    Args:
        job: A waiting job.
        at: Now.

    Returns:
        Whether it is held, not yet due, or waits for other jobs.
    """
    return job.put_off_at is not None or job.queued_at > at


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
