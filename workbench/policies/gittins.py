"""Gittins index, learned online: who is likely done soonest comes first."""

from __future__ import annotations

from workbench.core.history import size_class
from workbench.core.job import Job
from workbench.core.model import Seconds
from workbench.core.policy import Ordering
from workbench.core.state import State

_CLEARLY = 1.0
"""In doublings: what gives way has an index at most half as large."""


class Gittins(Ordering):
    """Ranks by the index that the lab's own jobs give to the service a job has had."""

    name = "gittins"
    preempts = True

    def tier(self, _state: State, job: Job, /) -> int:
        """Queues jobs by their level of service."""
        return job.level

    def score(self, state: State, tier: int, gpus: int, /) -> float:
        """Looks the index up."""
        return state.history.score(size_class(gpus), tier)

    def key(self, _state: State, job: Job, /) -> float:
        """Orders jobs alike by when they came to their level."""
        return job.entered_at

    def patience_s(
        self, _state: State, _running: Job, _waiting: Job, gap: float, _score: float, /
    ) -> Seconds | None:
        """Lets a job give way at once to one of a clearly larger index."""
        return 0.0 if gap >= _CLEARLY else None
