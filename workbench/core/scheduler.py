"""The only way to change `State`: events in, decisions out.

Read this first, then `state`, `transitions`, `apply` (facts and commits), `decide` (wishes) and
`placement`. `explain` answers people's questions about the same state.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from workbench.core.admission import admit
from workbench.core.apply import apply
from workbench.core.booking_admission import admit_booking
from workbench.core.bookings import next_time
from workbench.core.decide import decide
from workbench.core.decisions import (
    AboutBooking,
    AboutJob,
    Decision,
    End,
    Grant,
    Grow,
    Resume,
)
from workbench.core.events import (
    BookingCancelled,
    BookingMade,
    DeviceBusyOutside,
    DeviceLost,
    DeviceSeen,
    DispatchHeld,
    DispatchResumed,
    DrainEnded,
    DrainStarted,
    Event,
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
    UseFell,
    UseRose,
)
from workbench.core.job import Job
from workbench.core.model import JobId, JobState, Seconds, Shape, Units
from workbench.core.placement import Pool
from workbench.core.policy import Policy
from workbench.core.settings import Settings
from workbench.core.standings import Standings
from workbench.core.state import State

_CHANGES_THE_POOL: Final = frozenset(
    {
        HostSeen,
        DeviceSeen,
        DeviceLost,
        DeviceBusyOutside,
        DispatchHeld,
        DispatchResumed,
        DrainStarted,
        DrainEnded,
        HostRebooted,
        LeaseShrunk,
        LeaseSuspended,
    }
)
"""What changes more of the pool than the end of a lease does; it is made anew then."""
_OF_A_LEASE: Final = (
    LeaseStarted,
    LeaseEnded,
    LeaseShrunk,
    LeaseGrown,
    LeaseSuspended,
    LeaseResumed,
    UseFell,
    UseRose,
    ProgressMade,
)
_BOOKS: Final = (BookingMade, BookingCancelled)


class Scheduler:
    """A lab's queue and leases.

    A driver hands it one event at a time, writes the event and the decisions it returns in one
    transaction, and only then carries them out.

    Args:
        policy: Orders jobs.
        state: Where to go on from; the scheduler owns it from now on.
        settings: The lab's rules.
    """

    def __init__(
        self, policy: Policy, state: State | None = None, settings: Settings | None = None
    ) -> None:
        self._policy = policy
        self._settings = Settings() if settings is None else settings
        self._state = State() if state is None else state
        self._standings = Standings.of(self._state, policy, self._settings)
        self._pool: Pool | None = None
        self._changes_at: Seconds | None = None
        self._is_due = True
        self._decided_at: Seconds | None = None
        self._fitting: dict[Shape, None] = {}

    @classmethod
    def restore(
        cls,
        policy: Policy,
        entries: Iterable[Event | Decision],
        snapshot: State | None = None,
        settings: Settings | None = None,
    ) -> Scheduler:
        """Folds a journal without asking the policy, so that a new one never rewrites history.

        The driver then sends `AgentLost` for every owner in `state.agents` (nobody is connected
        to a new process), re-sends `unconfirmed()` as the agents come back, and sends a `Tick`.

        Args:
            policy: Orders waiting jobs from now on.
            entries: Events and decisions in the order in which they were written.
            snapshot: The state before the first of them; the scheduler owns it from now on.
            settings: The lab's rules from now on.

        Returns:
            A scheduler in the state after the last entry.

        Raises:
            IllegalEvent: The entries are not a journal that a scheduler wrote.
        """
        state = State() if snapshot is None else snapshot
        for entry in entries:
            apply(state, entry)
        return cls(policy, state, settings)

    @property
    def state(self) -> State:
        """The present state, to be read only; it changes with every event."""
        return self._state

    @property
    def policy(self) -> Policy:
        """What orders the waiting jobs."""
        return self._policy

    @property
    def standings(self) -> Standings:
        """Where the jobs stand, to be read only; it changes with every event."""
        return self._standings

    def handle(self, event: Event) -> list[Decision]:
        """Folds a fact and commits what it calls for.

        Args:
            event: What happened; its time is not before the last event's.

        Returns:
            What to carry out, in this order; already part of the state.

        Raises:
            UserError: The user asked for something that cannot be (`NeverFits`: for more than
                this host could ever give). The state is unchanged; write nothing.
            IllegalEvent: It cannot follow the present state, which is unchanged; write nothing.
        """
        self.fold(event)
        return self.decide()

    def fold(self, event: Event) -> None:
        """Folds a fact alone, where more happened at the same instant; `decide` must follow.

        Args:
            event: As for `handle`.

        Raises:
            UserError: As for `handle`.
            IllegalEvent: As for `handle`.
        """
        state = self._state
        admit(state, event, self._settings, self._fitting)
        if isinstance(event, _BOOKS):
            admit_booking(state, self._settings, event)
        job = self._subject(event)
        freed_for = state.dependents.get(job.id, ()) if job is not None else ()
        freed = job.grant if job is not None and isinstance(event, LeaseEnded) else None
        apply(state, event)
        # A job that starts gives way to nobody before its quantum is over, and frees nothing. One
        # that came to its time limit while it gave way has none left.
        self._is_due |= (
            not isinstance(event, LeaseStarted)
            or event.at != self._decided_at
            or self._settings.quantum_s <= 0
            or bool(state.bookings)
            or (bool(state.deadlines) and state.deadlines[0].at <= state.at)
        )
        if type(event) in _CHANGES_THE_POOL:
            self._pool = None
            self._fitting.clear()
        elif freed is not None and self._pool is not None:
            if state.slices and freed.units.gpus:
                self._pool = None  # Other parts of the card may be handed out from now on.
            else:
                self._pool.give_back(freed.units)
        if isinstance(event, HostRebooted):
            self._standings = Standings.of(state, self._policy, self._settings)
        elif job is not None:
            self._follow(job.id)
            for one in freed_for:
                self._follow(one)
        elif isinstance(event, JobSubmitted | HoldRequested | ReleaseRequested):
            self._follow(event.job)

    def decide(self) -> list[Decision]:
        """Commits what the facts folded so far call for.

        Returns:
            As for `handle`.
        """
        state = self._state
        if not self._is_due:
            return []
        self._is_due, self._decided_at = False, state.at
        if self._pool is None:
            self._pool = Pool.of(state)
        self._standings.refresh(state)
        decisions = self._move() if self._standings.watch.dues else []
        is_more = True
        while is_more:
            wishes, self._changes_at = decide(state, self._standings, self._pool)
            is_more = self._commit(wishes, self._pool)
            decisions += wishes
        return decisions

    def _move(self) -> list[Decision]:
        """Commits what the use of running jobs calls for, before anything that rests on it."""
        moves: list[Decision] = []
        while found := self._standings.watch.moves(self._state):
            for move in found:
                apply(self._state, move)
                self._follow(move.job)
            moves += found
        return moves

    def _commit(self, wishes: list[Decision], pool: Pool) -> bool:
        """Applies decisions; returns whether a job ended that others wait for."""
        is_waited_for = False
        for decision in wishes:
            if isinstance(decision, AboutBooking):
                apply(self._state, decision)
                continue
            dependents = self._state.dependents.get(decision.job, ())
            apply(self._state, decision)
            if isinstance(decision, Grant):
                pool.take(decision.units)
            elif isinstance(decision, Grow):
                pool.take(Units(gpus=decision.gpus))
            elif isinstance(decision, Resume):
                pool.take(Units(cores=decision.cores))
            self._follow(decision.job)
            if dependents and isinstance(decision, End):
                is_waited_for = True
                for one in dependents:
                    self._follow(one)
        return is_waited_for

    def next_wakeup(self) -> Seconds | None:
        """Says when time alone changes something.

        Returns:
            When to send a `Tick` at the latest; None if nothing waits for time.
        """
        watch, deadlines = self._standings.watch, self._state.deadlines
        times = [deadlines[0].at if deadlines else None]
        if watch.dues:
            times.append(watch.next_due())
        if self._state.waiting_jobs:  # Else nobody gains by a change of standing.
            times += [self._standings.next_change(), self._changes_at]
        if self._state.bookings:
            times.append(next_time(self._state, self._settings))
        return min([at for at in times if at is not None], default=None)

    def unconfirmed(self) -> list[AboutJob]:
        """Lists the decisions that no event confirmed yet, to be sent again after a restart.

        Returns:
            At most one for each lease, in the order of their ids. A stop replaces its grant, and
            any milder step: an agent that is told to stop a lease it never heard of must never
            start it.
        """
        jobs = [self._state.jobs[job] for job in self._state.leases.values()]
        decisions = [decision for job in jobs if (decision := _unconfirmed(job)) is not None]
        return sorted(decisions, key=lambda decision: decision.id)

    def _subject(self, event: Event) -> Job | None:
        """Finds the job of a live lease that an event is about."""
        if not isinstance(event, _OF_A_LEASE):
            return None
        job_id = self._state.leases.get(event.lease)
        return None if job_id is None else self._state.jobs[job_id]

    def _follow(self, job_id: JobId) -> None:
        job = self._state.find(job_id)
        if job is not None:
            self._standings.follow(self._state, job)


def _unconfirmed(job: Job) -> AboutJob | None:
    if job.stop is not None or job.preempt is not None:
        return job.stop or job.preempt
    if job.state is JobState.STARTING:
        return job.grant
    return job.ladder.pending if job.ladder is not None else None
