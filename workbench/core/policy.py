"""What a policy is to the core: an order of waiting and running jobs, and nothing else."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from workbench.core.job import Job
from workbench.core.model import Seconds
from workbench.core.state import State


class Bypass(StrEnum):
    """Whether later jobs may pass one that does not fit."""

    GREEDY = "greedy"
    """Whatever fits may start, until the core's bound on waiting."""
    STRICT = "strict"
    """Nothing passes the head of the queue."""
    BACKFILL = "backfill"
    """What does not put off the head's expected start may pass it."""


class Policy(Protocol):
    """Orders the jobs of one class from State alone.

    Classes, fair share, placement, limits, quotas, backfill and preemption belong to the core, so
    that policies can be compared.
    """

    @property
    def name(self) -> str:
        """What people choose it by."""
        ...

    @property
    def bypass(self) -> Bypass:
        """Whether later jobs may pass one that does not fit."""
        ...

    @property
    def preempts(self) -> bool:
        """Whether jobs of one class may take units from one another."""
        ...

    @property
    def asks_run_times(self) -> bool:
        """Whether it orders by how long jobs are expected to run; a simulator then tells it."""
        ...

    @property
    def bound_s(self) -> Seconds | None:
        """How long a job may wait until it is overdue; None for as long as the lab says."""
        ...

    def tier(self, state: State, job: Job, /) -> int:
        """Says in which of the policy's queues a job is; constant while it waits.

        Args:
            state: The present state.
            job: A waiting or running job.
        """
        ...

    def score(self, state: State, tier: int, gpus: int, /) -> float:
        """Ranks the jobs of a tier and width; may change with every event.

        Args:
            state: The present state.
            tier: Of a job.
            gpus: What the job asks for.

        Returns:
            The smaller is considered first.
        """
        ...

    def key(self, state: State, job: Job, /) -> float:
        """Orders jobs of one score; constant while a job waits, and while it runs.

        Args:
            state: The present state.
            job: A waiting or running job. Waiting and running ones are not compared by it.

        Returns:
            The smaller is considered first; the core breaks ties by order of submission.
        """
        ...

    def next_tier_at(self, state: State, job: Job, /) -> Seconds | None:
        """Says when a running job comes to another tier by time alone.

        Args:
            state: The present state.
            job: A running job.

        Returns:
            When, after now; None for never, or with its level of service.
        """
        ...

    def patience_s(
        self, state: State, running: Job, waiting: Job, gap: float, score: float, /
    ) -> Seconds | None:
        """Says how long a job waits until a running one of its class gives way to it.

        Args:
            state: The present state.
            running: A job that may be preempted.
            waiting: A job that does not fit.
            gap: The running one's score less the waiting one's, and with fair share their owners'
                shares likewise; both count doublings.
            score: The waiting one's.

        Returns:
            Seconds since it was queued; None for never, and then never for a better standing one
            either. Asked only of a policy that preempts.
        """
        ...


class Ordering:
    """What most policies are: greedy, never preempting, with ranks that stay. Base class."""

    name = ""
    bypass = Bypass.GREEDY
    preempts = False
    asks_run_times = False
    bound_s: Seconds | None = None

    def tier(self, _state: State, _job: Job, /) -> int:
        """Keeps one queue."""
        return 0

    def score(self, _state: State, _tier: int, _gpus: int, /) -> float:
        """Ranks all alike."""
        return 0.0

    def key(self, _state: State, _job: Job, /) -> float:
        """Leaves the order to the core's tie-break."""
        return 0.0

    def next_tier_at(self, _state: State, _job: Job, /) -> Seconds | None:
        """Says that time changes nothing."""
        return None

    def patience_s(
        self, _state: State, _running: Job, _waiting: Job, _gap: float, _score: float, /
    ) -> Seconds | None:
        """Says that nothing gives way."""
        return None
