"""First come, first served."""

from __future__ import annotations

from workbench.core.policy import Key
from workbench.core.state import Job, State


class Fifo:
    """Orders jobs by when they were submitted; greedy, as the core lets later ones pass."""

    name = "fifo"

    def waiting_key(self, _state: State, _job: Job, /) -> Key:
        """Leaves the order to the core's tie-break, which is that of submission.

        Args:
            _state: Not needed.
            _job: Not needed.

        Returns:
            The same for every job.
        """
        return ()
