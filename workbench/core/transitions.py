"""The life of a job, as data. The table is the specification; `apply` obeys it.

JobSubmitted → QUEUED ─ Grant → STARTING ─ LeaseStarted → RUNNING ─ Preempt → PREEMPTING
                 │ ↑               └── Stop ──┬── Stop ────┘                      │ │
                End└────── LeaseEnded ────────┼───────────────────────────────────┘ │
                 │                        STOPPING ←────────── Stop ────────────────┘
                 └────────→ ENDED ←─ LeaseEnded, HostRebooted (from every state with a lease)

RUNNING ─ Shrink → SHRINKING ─ LeaseShrunk → RUNNING; Grow and LeaseGrown leave it RUNNING
RUNNING ─ Suspend → SUSPENDING ─ LeaseSuspended → SUSPENDED ─ Resume → RESUMING
                                                     RUNNING ← LeaseResumed ─┘
Stop overtakes all of these, Preempt those that are SHRINKING or SUSPENDED.
"""

from __future__ import annotations

from typing import Final, NoReturn

from workbench.core.decisions import (
    Decision,
    End,
    Grant,
    Grow,
    Preempt,
    Resume,
    Shrink,
    Stop,
    Suspend,
)
from workbench.core.errors import IllegalEvent
from workbench.core.events import (
    CancelRequested,
    Event,
    HostRebooted,
    JobSubmitted,
    LeaseEnded,
    LeaseGrown,
    LeaseResumed,
    LeaseShrunk,
    LeaseStarted,
    LeaseSuspended,
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

TRANSITIONS: Final[dict[type[Event | Decision], dict[JobState | None, JobState]]] = {
    # Submitting and cancelling are idempotent, because clients repeat them when a reply is lost.
    JobSubmitted: {None: QUEUED} | {state: state for state in JobState},
    CancelRequested: {state: state for state in JobState},
    Grant: {QUEUED: STARTING},
    LeaseStarted: {STARTING: RUNNING, **_REPEATED},
    Preempt: {RUNNING: PREEMPTING, SHRINKING: PREEMPTING, SUSPENDED: PREEMPTING},
    Shrink: {RUNNING: SHRINKING},
    LeaseShrunk: {**_REPEATED, SHRINKING: RUNNING, ENDED: ENDED},
    Grow: {RUNNING: RUNNING},
    LeaseGrown: {**_REPEATED, ENDED: ENDED},
    Suspend: {RUNNING: SUSPENDING},
    LeaseSuspended: {**_REPEATED, SUSPENDING: SUSPENDED, ENDED: ENDED},
    Resume: {SUSPENDED: RESUMING},
    LeaseResumed: {**_REPEATED, RESUMING: RUNNING, ENDED: ENDED},
    Stop: {state: STOPPING for state in (STARTING, *_STARTED) if state is not STOPPING},
    LeaseEnded: _GONE,
    End: {QUEUED: ENDED},
    HostRebooted: {QUEUED: QUEUED, **_GONE},
}
"""Entry, then state of its job (None: no such job) → next state. What is not listed is illegal."""


def next_state(entry: Event | Decision, state: JobState | None) -> JobState:
    """Looks the next state of a job up.

    Args:
        entry: An event or decision of a type that the table lists.
        state: The state of the job that it is about; None where the core knows no such job.

    Returns:
        The state after it.

    Raises:
        IllegalEvent: The table has no such row.
    """
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
