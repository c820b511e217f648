"""Least attained service: who has run least comes first; needs no run times.

Source: Gu et al., "Tiresias", NSDI 2019, with the three thresholds of its simulator.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from workbench.core.job import Job, served_s
from workbench.core.model import Seconds
from workbench.core.policy import Ordering
from workbench.core.state import State

_THRESHOLDS_S: Final = (3250.0, 7200.0, 18000.0)
_SLACK_S: Final = 1e-6


class Las(Ordering):
    """Queues jobs by attained service; those in one queue by when they came."""

    name = "las"
    preempts = True

    def tier(self, state: State, job: Job, /) -> int:
        """Counts the thresholds that are passed."""
        attained = served_s(job, state.at) * self.width(job)
        return bisect_right(_THRESHOLDS_S, attained + _SLACK_S)

    def score(self, _state: State, tier: int, _gpus: int, /) -> float:
        """Ranks by queue."""
        return tier

    def next_tier_at(self, state: State, job: Job, /) -> Seconds | None:
        """Says when the next threshold is reached."""
        tier = self.tier(state, job)
        if tier == len(_THRESHOLDS_S):
            return None
        left = _THRESHOLDS_S[tier] / self.width(job) - served_s(job, state.at)
        return state.at + max(left, _SLACK_S)

    def patience_s(
        self, _state: State, _running: Job, _waiting: Job, gap: float, _score: float, /
    ) -> Seconds | None:
        """Lets a job give way at once to one of a lower queue."""
        return 0.0 if gap > 0 else None

    def width(self, _job: Job) -> float:
        """Counts time alone."""
        return 1.0


class Las2d(Las):
    """Counts GPU-seconds."""

    name = "las-2d"

    def width(self, job: Job) -> float:
        """Counts GPUs."""
        return float(max(job.request.gpus, 1))
