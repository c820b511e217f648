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
    Lower,
    OpenBooking,
    Preempt,
    Raise,
    ReleaseBooking,
    Resume,
    Shrink,
    Stop,
    Suspend,
    Warn,
    WarnOverstay,
    WarnUnused,
)
from workbench.core.events import (
    AgentConnected,
    AgentLost,
    BookingCancelled,
    BookingMade,
    CancelRequested,
    DeviceBusyOutside,
    DeviceLost,
    DeviceSeen,
    DispatchHeld,
    DispatchResumed,
    DrainEnded,
    DrainStarted,
    Event,
    FairShareSet,
    HoldRequested,
    HostRebooted,
    HostSeen,
    JobSubmitted,
    LeaseEnded,
    LeaseGrown,
    LeaseResumed,
    LeaseShrunk,
    LeaseStarted,
    LeaseSuspended,
    ProgressMade,
    ReleaseRequested,
    Tick,
    UseFell,
    UseRose,
)
from workbench.core.filing import cross
from workbench.core.folds import (
    bookings,
    commits,
    host,
    jobs,
    ladder,
    leases,
    use,
)
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
    next_decision = state.next_decision
    if isinstance(entry, Decision):
        if entry.id != next_decision or entry.at != state.at:
            refuse(entry, f"the next decision is {next_decision} at {state.at}")
        next_decision += 1
    elif not state.at <= entry.at < float("inf"):
        refuse(entry, f"the clock is at {state.at} and never goes back")
    _FOLDS[type(entry)](state, entry)
    state.at = entry.at
    state.next_decision = next_decision
    if state.booking_ends_at is not None and state.booking_ends_at <= state.at:
        bookings.roll(state)
    while state.crossings and state.crossings[0].at <= state.at:
        cross(state, state.jobs[state.crossings[0].job])


_FOLDS: Final[dict[type[Event | Decision], Callable[[State, Any], None]]] = {
    HostSeen: host.host_seen,
    DeviceSeen: host.device_seen,
    DeviceLost: host.device_lost,
    DeviceBusyOutside: host.device_busy_outside,
    DispatchHeld: host.dispatch_held,
    DispatchResumed: host.dispatch_resumed,
    FairShareSet: host.fair_share_set,
    DrainStarted: host.drain_started,
    DrainEnded: host.drain_ended,
    AgentConnected: host.agent_connected,
    AgentLost: host.agent_lost,
    JobSubmitted: jobs.job_submitted,
    CancelRequested: jobs.cancel_requested,
    HoldRequested: jobs.hold_requested,
    ReleaseRequested: jobs.release_requested,
    LeaseStarted: leases.lease_started,
    LeaseShrunk: ladder.lease_shrunk,
    LeaseGrown: ladder.lease_grown,
    LeaseSuspended: ladder.lease_suspended,
    LeaseResumed: ladder.lease_resumed,
    UseFell: use.use_fell,
    UseRose: use.use_rose,
    ProgressMade: use.progress_made,
    LeaseEnded: leases.lease_ended,
    HostRebooted: leases.host_rebooted,
    BookingMade: bookings.booking_made,
    BookingCancelled: bookings.booking_cancelled,
    Tick: host.tick,
    Grant: commits.grant,
    Stop: commits.stop,
    Preempt: commits.preempt,
    Shrink: ladder.shrink,
    Grow: ladder.grow,
    Suspend: ladder.suspend,
    Resume: ladder.resume,
    End: commits.end,
    Warn: use.warn,
    Lower: use.lower,
    Raise: use.raise_,
    OpenBooking: bookings.open_booking,
    WarnOverstay: bookings.warn_overstay,
    WarnUnused: bookings.warn_unused,
    ReleaseBooking: bookings.release_booking,
}
