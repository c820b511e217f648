"""The only way to change `State`: events in, decisions out.

Read this first, then `state`, `transitions`, `apply` (facts and commits), `decide` (wishes) and
`placement`. `explain` answers people's questions about the same state.
"""

from __future__ import annotations

from collections.abc import Iterable

from workbench.core.admission import admit
from workbench.core.apply import apply
from workbench.core.decide import decide
from workbench.core.decisions import Decision, Grant, Stop
from workbench.core.events import Event, JobSubmitted
from workbench.core.model import JobState, Seconds
from workbench.core.policy import Policy
from workbench.core.state import State
from workbench.core.waiting import Queue


class Scheduler:
    """A lab's queue and leases.

    A driver hands it one event at a time, writes the event and the decisions it returns in one
    transaction, and only then carries them out.

    Args:
        policy: Orders waiting jobs.
        state: Where to go on from; the scheduler owns it from now on.
    """

    def __init__(self, policy: Policy, state: State | None = None) -> None:
        self._policy = policy
        self._state = State() if state is None else state
        self._queue = Queue.of(self._state, policy)

    @classmethod
    def restore(
        cls,
        policy: Policy,
        entries: Iterable[Event | Decision],
        snapshot: State | None = None,
    ) -> Scheduler:
        """Folds a journal without asking the policy, so that a new one never rewrites history.

        The driver then sends `AgentLost` for every owner in `state.agents` (nobody is connected
        to a new process), re-sends `unconfirmed()` as the agents come back, and sends a `Tick`.

        Args:
            policy: Orders waiting jobs from now on.
            entries: Events and decisions in the order in which they were written.
            snapshot: The state before the first of them; the scheduler owns it from now on.

        Returns:
            A scheduler in the state after the last entry.

        Raises:
            IllegalEvent: The entries are not a journal that a scheduler wrote.
        """
        state = State() if snapshot is None else snapshot
        for entry in entries:
            apply(state, entry)
        return cls(policy, state)

    @property
    def state(self) -> State:
        """The present state, to be read only; it changes with every event."""
        return self._state

    @property
    def policy(self) -> Policy:
        """What orders the waiting jobs."""
        return self._policy

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
        admit(self._state, event)
        apply(self._state, event)
        if isinstance(event, JobSubmitted):
            self._follow(event)
        decisions = decide(self._state, self._queue)
        for decision in decisions:
            apply(self._state, decision)
            self._follow(decision)
        return decisions

    def next_wakeup(self) -> Seconds | None:
        """Says when time alone changes something.

        Returns:
            When to send a `Tick` at the latest; None if nothing waits for time.
        """
        return self._state.deadlines[0].at if self._state.deadlines else None

    def unconfirmed(self) -> list[Grant | Stop]:
        """Lists the decisions that no event confirmed yet, to be sent again after a restart.

        Returns:
            At most one for each lease, in the order of their ids. A stop replaces its grant: an
            agent that is told to stop a lease it never heard of must never start it.
        """
        jobs = [self._state.jobs[job] for job in self._state.leases.values()]
        grants = [job.grant for job in jobs if job.grant and job.state is JobState.STARTING]
        stops = [job.stop for job in jobs if job.stop]
        return sorted([*grants, *stops], key=lambda decision: decision.id)

    def _follow(self, entry: JobSubmitted | Decision) -> None:
        job = self._state.find(entry.job)
        if job is not None:
            self._queue.follow(self._state, job)
