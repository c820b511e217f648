"""Folds what users do with jobs, and what the end of one job means to others."""

from __future__ import annotations

from workbench.core.events import CancelRequested, HoldRequested, JobSubmitted, ReleaseRequested
from workbench.core.filing import put
from workbench.core.job import Job, evolve
from workbench.core.model import After, Dependency, JobId, JobState, Outcome
from workbench.core.spelling import short_job
from workbench.core.state import State
from workbench.core.transitions import next_state, refuse


def job_submitted(state: State, event: JobSubmitted) -> None:
    known = state.find(event.job)
    following = next_state(event, known.state if known else None)
    if known is not None:
        if (known.owner, known.request) != (event.owner, event.request):
            refuse(event, "the job id belongs to another job")
        return
    request = event.request
    before = [(one, state.find(one.job)) for one in request.after]
    waits_for = tuple(one.job for one, job in before if job and job.ended_at is None)
    put_off_s = request.start_after_s or 0.0
    job = Job(
        id=event.job,
        owner=event.owner,
        group=event.group,
        request=request,
        name=event.name,
        notebook=event.notebook,
        number=state.next_job,
        submitted_at=event.at,
        queued_at=event.at + put_off_s,
        put_off_s=put_off_s,
        put_off_at=event.at if request.is_held or waits_for else None,
        is_held=request.is_held,
        waits_for=waits_for,
        entered_at=event.at,
        state=following,
    )
    state.next_job += 1
    put(state, job, before=None)
    for live in waits_for:
        state.dependents[live] = (*state.dependents.get(live, ()), job.id)
    for wanted, ended in before:
        if ended is None or (ended.outcome is not None and not _is_met(wanted, ended.outcome)):
            state.cancelling[job.id] = _never(wanted, ended)


def cancel_requested(state: State, event: CancelRequested) -> None:
    known = state.find(event.job)
    next_state(event, known.state if known else None)
    if known and known.state not in {JobState.STOPPING, JobState.ENDED}:
        state.cancelling[event.job] = event.reason


def hold_requested(state: State, event: HoldRequested) -> None:
    job = state.find(event.job)
    next_state(event, job.state if job else None)
    if job and not job.is_held:
        put_off_at = event.at if job.put_off_at is None else job.put_off_at
        put(state, evolve(job, is_held=True, put_off_at=put_off_at), before=job)


def release_requested(state: State, event: ReleaseRequested) -> None:
    job = state.find(event.job)
    next_state(event, job.state if job else None)
    if job and job.is_held:
        _put(state, evolve(job, is_held=False), event.at, before=job)


def release_dependents(state: State, ended: Job, at: float) -> None:
    """Lets go of the jobs that waited for one to end, and forgets what it waited for itself."""
    for before in ended.waits_for:
        others = tuple(one for one in state.dependents[before] if one != ended.id)
        if others:
            state.dependents[before] = others
        else:
            del state.dependents[before]
    assert ended.outcome is not None
    for job_id in state.dependents.pop(ended.id, ()):
        job = state.jobs[job_id]
        waits_for = tuple(one for one in job.waits_for if one != ended.id)
        _put(state, evolve(job, waits_for=waits_for), at, before=job)
        (wanted,) = (one for one in job.request.after if one.job == ended.id)
        if not _is_met(wanted, ended.outcome):
            state.cancelling.setdefault(job_id, _never(wanted, ended))


def _is_met(wanted: Dependency, outcome: Outcome) -> bool:
    if wanted.after is After.ANY:
        return True
    return (outcome is Outcome.DONE) == (wanted.after is After.OK)


def _never(wanted: Dependency, ended: Job | None) -> str:
    needed = "done" if wanted.after is After.OK else "not done"
    name = short_job(JobId(wanted.job))
    if ended is None or ended.outcome is None:
        return f"it waits for {name}, which is not known any more"
    return f"it was to start once {name} was {needed}, and that is {ended.outcome}"


def _put(state: State, job: Job, at: float, *, before: Job) -> None:
    """Files a job that is held no more or waits for one job less: now, or when it is due."""
    if job.put_off_at is not None and not job.is_held and not job.waits_for:
        waited_s = max(job.put_off_at - job.queued_at, 0.0)
        queued_at = max(job.queued_at, at - waited_s)
        put_off_s = job.put_off_s + queued_at - job.queued_at
        job = evolve(job, queued_at=queued_at, put_off_s=put_off_s, put_off_at=None)
    put(state, job, before=before)
