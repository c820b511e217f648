"""Efficiency moves a running job's standing: warned first, then lowered by one class, then raised.

What was told of its use is in the state; when that calls for something follows from the settings,
so it is derived here and committed as decisions, which the journal keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from workbench.core.decisions import Lower, Raise, Warn
from workbench.core.job import Job, deadline_of
from workbench.core.model import JobId, JobState, PriorityClass, Seconds
from workbench.core.settings import Settings
from workbench.core.spelling import spell_span
from workbench.core.state import State
from workbench.core.use import Use

_CLASSES: Final = tuple(PriorityClass)


class Watch:
    """Knows when running jobs are next warned, lowered or raised. Only the standings change it.

    Args:
        settings: The lab's rules.
    """

    def __init__(self, settings: Settings) -> None:
        self.dues: dict[JobId, Seconds] = {}
        """When each of the jobs is that this concerns."""
        self._settings = settings
        self._agenda: list[tuple[Seconds, int, JobId]] = []

    def follow(self, job: Job) -> None:
        """Notes when a job is next due.

        Args:
            job: Any job.
        """
        due = _due_at(job, self._settings)
        if due is None:
            self.dues.pop(job.id, None)
        elif self.dues.get(job.id) != due:
            self.dues[job.id] = due
            heappush(self._agenda, (due, job.number, job.id))

    def next_due(self) -> Seconds | None:
        """Says when a job is due next; None if none is."""
        while self._agenda:
            at, _, job_id = self._agenda[0]
            if self.dues.get(job_id) == at:
                return at
            heappop(self._agenda)
        return None

    def moves(self, state: State) -> list[Warn | Lower | Raise]:
        """Proposes what is due now.

        Args:
            state: The state at its present time; it is not changed.

        Returns:
            One decision for each job that is due and not about to be stopped; more may be due once
            these are committed.
        """
        decisions: list[Warn | Lower | Raise] = []
        while (at := self.next_due()) is not None and at <= state.at:
            _, _, job_id = heappop(self._agenda)
            del self.dues[job_id]
            job = state.jobs[job_id]
            deadline = deadline_of(job)
            if job_id in state.cancelling or (deadline is not None and deadline.at <= state.at):
                continue
            decisions.append(
                _move(state, job, state.next_decision + len(decisions), self._settings)
            )
        return decisions


def _due_at(job: Job, settings: Settings) -> Seconds | None:
    use = job.use
    if use is None or job.state is not JobState.RUNNING:
        return None
    if use.lowered is not None:
        return None if use.risen_since is None else use.risen_since + settings.idle_back_s
    if use.warned is not None:
        return use.warned.until
    if use.low_since is None or settings.idle_grace_s is None:
        return None
    if use.warned_at is None:
        return use.low_since
    return max(use.low_since, use.warned_at + settings.idle_grace_s)


def _move(state: State, job: Job, number: int, settings: Settings) -> Warn | Lower | Raise:
    use, at = job.use, state.at
    assert use is not None
    assert job.grant is not None
    lease = job.grant.lease
    if use.lowered is not None:
        assert use.risen_since is not None
        span = spell_span(at - use.risen_since)
        reason = f"its {_what(job)} rose to {_percent(use)} and was not low for {span}"
        return Raise(id=number, at=at, lease=lease, job=job.id, reason=reason)
    assert use.low_since is not None
    fell = f"its {_what(job)} fell to {_percent(use)}"
    if use.warned is not None:
        reason = f"{fell} and stayed low for {spell_span(at - use.low_since)}"
        return Lower(id=number, at=at, lease=lease, job=job.id, reason=reason)
    until = at + (settings.idle_grace_s or 0.0)
    return Warn(id=number, at=at, lease=lease, job=job.id, reason=fell, until=until)


def is_lowered(job: Job) -> bool:
    """Tells whether a job counts as one class lower than its own.

    Args:
        job: Any job.
    """
    return job.use is not None and job.use.lowered is not None


def why_it_moves(job: Job, spell_at: Callable[[Seconds], str]) -> str:
    """Says how the use of a job moves its standing.

    Args:
        job: Any job.
        spell_at: Spells a time of the lab's clock.

    Returns:
        One sentence without its full stop; empty where use moves nothing.
    """
    use = job.use
    if use is None or job.state not in {JobState.RUNNING, JobState.QUEUED, JobState.SUSPENDED}:
        return ""
    if use.lowered is not None:
        return f"{_counts(job)} since {spell_at(use.lowered.at)}: {use.lowered.reason}"
    if use.warned is not None:
        assert use.low_since is not None
        what, part = _what(job), _percent(use)
        low = f"its {what} is low since {spell_at(use.low_since)} ({part})"
        return f"{low}: it {_counts(job)} from {spell_at(use.warned.until)} on unless that rises"
    return ""


def spell_level(level: int) -> str:
    """Spells a class.

    Args:
        level: Its index, one more for what is below all classes.

    Returns:
        `class low`, `below class low`.
    """
    return f"class {_CLASSES[level]}" if level < len(_CLASSES) else f"below class {_CLASSES[-1]}"


def _counts(job: Job) -> str:
    name = spell_level(_CLASSES.index(job.request.priority) + 1)
    return f"counts {name}" if name.startswith("below") else f"counts as {name}"


def _what(job: Job) -> str:
    return "GPU use" if job.request.gpus else "use"


def _percent(use: Use) -> str:
    return f"{100 * use.part:.0f} %"
