"""Folds what users and agents do with jobs and leases."""

from __future__ import annotations

from workbench.core.events import CancelRequested, JobSubmitted
from workbench.core.filing import put
from workbench.core.job import Job
from workbench.core.model import JobState
from workbench.core.state import State
from workbench.core.transitions import next_state, refuse


def job_submitted(state: State, event: JobSubmitted) -> None:
    known = state.find(event.job)
    following = next_state(event, known.state if known else None)
    if known is not None:
        if (known.owner, known.request) != (event.owner, event.request):
            refuse(event, "the job id belongs to another job")
        return
    job = Job(
        id=event.job,
        owner=event.owner,
        request=event.request,
        name=event.name,
        notebook=event.notebook,
        number=state.next_job,
        submitted_at=event.at,
        queued_at=event.at,
        entered_at=event.at,
        state=following,
    )
    state.next_job += 1
    put(state, job, before=None)


def cancel_requested(state: State, event: CancelRequested) -> None:
    known = state.find(event.job)
    next_state(event, known.state if known else None)
    if known and known.state not in {JobState.STOPPING, JobState.ENDED}:
        state.cancelling[event.job] = event.reason
