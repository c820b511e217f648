"""What a policy is to the core: an order, and nothing else."""

from __future__ import annotations

from typing import Protocol

from workbench.core.state import Job, State

Key = tuple[float, ...]
"""Keys of one policy have one length; the smaller is considered first."""


class Policy(Protocol):
    """Orders the waiting jobs of one class from State alone.

    Classes, placement, limits and quotas belong to the core, so that policies can be compared.
    """

    @property
    def name(self) -> str:
        """What people choose it by."""
        ...

    def waiting_key(self, state: State, job: Job, /) -> Key:
        """Ranks a waiting job within its class; it must not change while the job waits.

        Args:
            state: The state in which the job enters the queue.
            job: A waiting job.

        Returns:
            The key; the core breaks ties by order of submission.
        """
        ...
