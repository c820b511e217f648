"""The waiting jobs in a policy's order, in buckets of jobs that fit or do not fit together.

It is derived from the state and the policy: the journal knows nothing of it, so that another
policy may order the same history. With it, deciding looks at one job of each bucket, however
long the queue is.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.core.model import JobId, JobState, PriorityClass, Uid
from workbench.core.placement import Shape
from workbench.core.policy import Key, Policy
from workbench.core.state import Job, State


class Turn(NamedTuple):
    """A waiting job's turn within its class; no two jobs have equal ones."""

    key: Key
    number: int
    job: JobId


@dataclass(slots=True, kw_only=True)
class Bucket:
    """Waiting jobs of one class, owner and shape.

    Attributes:
        owner: Of all of them.
        shape: Of all of them.
        turns: Sorted; never empty while the queue lists the bucket.
    """

    owner: Uid
    shape: Shape
    turns: list[Turn] = field(default_factory=list)


class Queue:
    """Keeps the waiting jobs in order. Only the scheduler changes it.

    Args:
        policy: Orders the jobs of a class.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._buckets: dict[PriorityClass, dict[tuple[Uid, Shape], Bucket]] = {
            priority: {} for priority in PriorityClass
        }
        self._turns: dict[JobId, Turn] = {}

    @classmethod
    def of(cls, state: State, policy: Policy) -> Queue:
        """Builds the queue of a state.

        Args:
            state: The state; it is not changed.
            policy: Orders the jobs of a class.

        Returns:
            A queue of all waiting jobs.
        """
        queue = cls(policy)
        for job in state.jobs.values():
            queue.follow(state, job)
        return queue

    def follow(self, state: State, job: Job) -> None:
        """Adds or removes a job, as its state says.

        Args:
            state: The state in which the job is what it is.
            job: Any job; nothing changes if the queue is right about it.
        """
        is_waiting = job.state is JobState.QUEUED
        if is_waiting == (job.id in self._turns):
            return
        buckets = self._buckets[job.request.priority]
        place = (job.owner, Shape.of(job.request))
        if is_waiting:
            turn = Turn(self._policy.waiting_key(state, job), job.number, job.id)
            self._turns[job.id] = turn
            bucket = buckets.setdefault(place, Bucket(owner=place[0], shape=place[1]))
            insort(bucket.turns, turn)
            return
        turns = buckets[place].turns
        del turns[bisect_left(turns, self._turns.pop(job.id))]
        if not turns:
            del buckets[place]

    def buckets(self, priority: PriorityClass) -> Iterable[Bucket]:
        """Lists the buckets of a class.

        Args:
            priority: The class.

        Returns:
            Its buckets, in no order that decisions may depend on; to be read only.
        """
        return self._buckets[priority].values()


def in_order(state: State, policy: Policy) -> list[Job]:
    """Lists all waiting jobs in the order in which they are considered.

    Args:
        state: The state; it is not changed.
        policy: Orders the jobs of a class.

    Returns:
        Higher classes first, then the policy's order; takes time in the length of the queue.
    """
    ranks = {priority: rank for rank, priority in enumerate(PriorityClass)}
    return sorted(
        (job for job in state.jobs.values() if job.state is JobState.QUEUED),
        key=lambda job: (
            ranks[job.request.priority],
            policy.waiting_key(state, job),
            job.number,
        ),
    )
