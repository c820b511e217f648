"""Shortest job first, by how long jobs are expected to run."""

from __future__ import annotations

from workbench.core.job import Job, served_s
from workbench.core.model import Seconds
from workbench.core.policy import Bypass, Ordering
from workbench.core.state import State

_UNKNOWN = float("inf")


class Sjf(Ordering):
    """Shortest expected job first; unknown ones last."""

    name = "sjf"
    asks_run_times = True

    def key(self, _state: State, job: Job, /) -> float:
        """Orders by expected run time."""
        return _left_s(job, 0.0)


class SjfStrict(Sjf):
    """Nothing passes the shortest job."""

    name = "sjf-strict"
    bypass = Bypass.STRICT


class Srtf(Sjf):
    """Shortest remaining time first; takes units from longer ones."""

    name = "srtf"
    preempts = True

    def key(self, _state: State, job: Job, /) -> float:
        """Orders waiting jobs by what is left, running ones by when that is over."""
        since = 0.0 if job.started_at is None else job.started_at
        return since + _left_s(job, since)

    def patience_s(
        self, state: State, running: Job, waiting: Job, _gap: float, _score: float, /
    ) -> Seconds | None:
        """Lets a job give way at once to one that has less left."""
        is_shorter = _left_s(waiting, state.at) < _left_s(running, state.at)
        return 0.0 if is_shorter else None


def _left_s(job: Job, at: Seconds) -> Seconds:
    expected_s = job.request.expected_s
    return _UNKNOWN if expected_s is None else max(expected_s - served_s(job, at), 0.0)
