"""The life of a job, as data. The table is the specification; `apply` obeys it.

docs/scheduler.md draws it; `make docs` draws it anew.
"""

from __future__ import annotations

from typing import Final, NoReturn

from workbench.core.decisions import (
    Decision,
    End,
    Grant,
    Grow,
    Lower,
    Preempt,
    Raise,
    Resume,
    Shrink,
    Stop,
    Suspend,
    Warn,
    WarnOverstay,
)
from workbench.core.errors import IllegalEvent
from workbench.core.events import (
    CancelRequested,
    Event,
    HoldRequested,
    HostRebooted,
    JobSubmitted,
    LeaseEnded,
    LeaseGrown,
    LeaseResumed,
    LeaseShrunk,
    LeaseStarted,
    LeaseSuspended,
    ProgressMade,
    ReleaseRequested,
    UseFell,
    UseRose,
)
from workbench.core.model import JobState

(
    QUEUED,
    STARTING,
    RUNNING,
    SHRINKING,
    SUSPENDING,
    SUSPENDED,
    RESUMING,
    PREEMPTING,
    STOPPING,
    ENDED,
) = JobState

_STARTED: Final = (RUNNING, SHRINKING, SUSPENDING, SUSPENDED, RESUMING, PREEMPTING, STOPPING)
_REPEATED: Final[dict[JobState | None, JobState]] = {state: state for state in _STARTED}
"""An agent repeats its confirmation after it lost the controller; a stop may overtake it."""
_GONE: Final[dict[JobState | None, JobState]] = {
    # A job that is preempted waits again, unless it was done before it came.
    **dict.fromkeys((STARTING, *_STARTED, ENDED), ENDED),
    PREEMPTING: QUEUED,
}

_TRIED_AGAIN: Final[dict[JobState | None, JobState]] = dict.fromkeys(
    (STARTING, RUNNING, SHRINKING, SUSPENDING, SUSPENDED, RESUMING), QUEUED
)
_OF_A_LEASE: Final = dict[JobState | None, JobState](
    {state: state for state in JobState if state is not QUEUED}
)
"""What is measured of a lease moves no job, and may come late."""

TRANSITIONS: Final[dict[type[Event | Decision], dict[JobState | None, JobState]]] = {
    # Submitting and cancelling are idempotent, because clients repeat them when a reply is lost.
    JobSubmitted: {None: QUEUED} | {state: state for state in JobState},
    CancelRequested: {state: state for state in JobState},
    HoldRequested: {QUEUED: QUEUED},
    ReleaseRequested: {state: state for state in JobState},
    Grant: {QUEUED: STARTING},
    LeaseStarted: {STARTING: RUNNING, **_REPEATED},
    UseFell: _OF_A_LEASE,
    UseRose: _OF_A_LEASE,
    ProgressMade: _OF_A_LEASE,
    Warn: {RUNNING: RUNNING},
    Lower: {RUNNING: RUNNING},
    Raise: {RUNNING: RUNNING},
    Preempt: {RUNNING: PREEMPTING, SHRINKING: PREEMPTING, SUSPENDED: PREEMPTING},
    Shrink: {RUNNING: SHRINKING},
    LeaseShrunk: {**_REPEATED, SHRINKING: RUNNING, ENDED: ENDED},
    Grow: {RUNNING: RUNNING},
    LeaseGrown: {**_REPEATED, ENDED: ENDED},
    Suspend: {RUNNING: SUSPENDING},
    LeaseSuspended: {**_REPEATED, SUSPENDING: SUSPENDED, ENDED: ENDED},
    Resume: {SUSPENDED: RESUMING},
    LeaseResumed: {**_REPEATED, RESUMING: RUNNING, ENDED: ENDED},
    WarnOverstay: {STARTING: STARTING, RUNNING: RUNNING, SHRINKING: SHRINKING},
    Stop: {state: STOPPING for state in (STARTING, *_STARTED) if state is not STOPPING},
    LeaseEnded: _GONE,
    End: {QUEUED: ENDED},
    HostRebooted: {QUEUED: QUEUED, **_GONE},
}
"""Entry, then state of its job (None: no such job) → next state. What is not listed is illegal."""

INSTEAD: Final[dict[type[Event | Decision], dict[JobState | None, JobState]]] = {
    # What fails or is lost starts again where its request says so; what is to give way may be done
    # before it does.
    LeaseEnded: {**_TRIED_AGAIN, PREEMPTING: ENDED},
    HostRebooted: _TRIED_AGAIN,
}
"""As `TRANSITIONS`: the other state that may follow."""


def next_state(
    entry: Event | Decision, state: JobState | None, *, instead: bool = False
) -> JobState:
    """Looks the next state of a job up.

    Args:
        entry: An event or decision of a type that the table lists.
        state: The state of the job that it is about; None where the core knows no such job.
        instead: Whether the other state that may follow is wanted, where there is one.

    Returns:
        The state after it.

    Raises:
        IllegalEvent: The table has no such row.
    """
    following = INSTEAD.get(type(entry), {}).get(state) if instead else None
    if following is None:
        following = TRANSITIONS[type(entry)].get(state)
    if following is None:
        where = "for a job that is not known" if state is None else f"while its job is {state}"
        message = f"{type(entry).__name__} is illegal {where}: {entry}"
        raise IllegalEvent(message)
    return following


def refuse(entry: Event | Decision, rule: str) -> NoReturn:
    """Says that an entry cannot follow the state.

    Args:
        entry: The entry.
        rule: What it breaks.

    Raises:
        IllegalEvent: Always.
    """
    message = f"{type(entry).__name__} is illegal: {rule}: {entry}"
    raise IllegalEvent(message)
