"""Folds one event or decision into the state: checks everything first, then changes it.

The journal replays through here, so what was legal once must stay legal: what users may ask for
is checked in `admission`, before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

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
from workbench.core.events import (
    AgentConnected,
    AgentLost,
    CancelRequested,
    DeviceBusyOutside,
    DeviceLost,
    DeviceSeen,
    DispatchHeld,
    DispatchResumed,
    Event,
    HostRebooted,
    HostSeen,
    JobSubmitted,
    LeaseEnded,
    LeaseGrown,
    LeaseResumed,
    LeaseShrunk,
    LeaseStarted,
    LeaseSuspended,
    Tick,
)
from workbench.core.filing import cross
from workbench.core.folds import commits, host, jobs, ladder, leases
from workbench.core.state import State
from workbench.core.transitions import refuse


def apply(state: State, entry: Event | Decision) -> None:
    """Folds a fact or commits a wish.

    Args:
        state: Changed in place, unless this raises.
        entry: What the journal holds next.

    Raises:
        IllegalEvent: It cannot follow this state; the state is unchanged.
    """
    if isinstance(entry, Decision):
        if entry.id != state.next_decision or entry.at != state.at:
            refuse(entry, f"the next decision is {state.next_decision} at {state.at}")
    elif not state.at <= entry.at < float("inf"):
        refuse(entry, f"the clock is at {state.at} and never goes back")
    _FOLDS[type(entry)](state, entry)
    state.at = entry.at
    if isinstance(entry, Decision):
        state.next_decision += 1
    while state.crossings and state.crossings[0].at <= state.at:
        cross(state, state.jobs[state.crossings[0].job])


_FOLDS: Final[dict[type[Event | Decision], Callable[[State, Any], None]]] = {
    HostSeen: host.host_seen,
    DeviceSeen: host.device_seen,
    DeviceLost: host.device_lost,
    DeviceBusyOutside: host.device_busy_outside,
    DispatchHeld: host.dispatch_held,
    DispatchResumed: host.dispatch_resumed,
    AgentConnected: host.agent_connected,
    AgentLost: host.agent_lost,
    JobSubmitted: jobs.job_submitted,
    CancelRequested: jobs.cancel_requested,
    LeaseStarted: leases.lease_started,
    LeaseShrunk: ladder.lease_shrunk,
    LeaseGrown: ladder.lease_grown,
    LeaseSuspended: ladder.lease_suspended,
    LeaseResumed: ladder.lease_resumed,
    LeaseEnded: leases.lease_ended,
    HostRebooted: leases.host_rebooted,
    Tick: host.tick,
    Grant: commits.grant,
    Stop: commits.stop,
    Preempt: commits.preempt,
    Shrink: ladder.shrink,
    Grow: ladder.grow,
    Suspend: ladder.suspend,
    Resume: ladder.resume,
    End: commits.end,
}
