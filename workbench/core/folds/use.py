"""Folds what is measured of running jobs, and commits what that calls for."""

from __future__ import annotations

from dataclasses import replace

from workbench.core.decisions import Lower, Raise, Warn
from workbench.core.events import ProgressMade, UseFell, UseRose
from workbench.core.filing import put
from workbench.core.folds.leases import job_of
from workbench.core.history import RESTART_S
from workbench.core.job import Job, evolve, forecast_left_s
from workbench.core.model import JobState
from workbench.core.state import State
from workbench.core.transitions import next_state, refuse
from workbench.core.use import Progress, Use


def use_fell(state: State, event: UseFell) -> None:
    job = _running_job(state, event)
    if job is None:
        return
    use = job.use or Use(part=event.part)
    since = event.at if use.low_since is None else use.low_since
    use = replace(use, part=event.part, low_since=since, risen_since=None)
    put(state, evolve(job, use=use), before=job)


def use_rose(state: State, event: UseRose) -> None:
    job = _running_job(state, event)
    if job is None or job.use is None:
        return
    since = None
    if job.use.lowered is not None:
        since = event.at if job.use.risen_since is None else job.use.risen_since
    use = replace(job.use, part=event.part, low_since=None, risen_since=since, warned=None)
    put(state, evolve(job, use=use), before=job)


def progress_made(state: State, event: ProgressMade) -> None:
    job = _running_job(state, event)
    if job is None or job.grant is None:
        return
    lease, known = job.grant.lease, job.progress
    is_first = known is None or known.lease != lease
    if known is not None and not is_first and event.part < known.part:
        refuse(event, f"progress never falls, and the job was at {known.part:g}")
    nearly_done_from = None if known is None or is_first else known.nearly_done_from
    after = evolve(job, progress=Progress(part=event.part, lease=lease))
    if nearly_done_from is None or nearly_done_from > event.at:
        left_s = forecast_left_s(after, event.at)
        nearly_done_from = None if left_s is None else event.at + max(left_s - RESTART_S, 0.0)
    progress = Progress(part=event.part, lease=lease, nearly_done_from=nearly_done_from)
    put(state, evolve(after, progress=progress), before=job)


def _running_job(state: State, event: UseFell | UseRose | ProgressMade) -> Job | None:
    """Finds the job that an event changes; None where it comes too early or too late."""
    if not 0.0 <= event.part <= 1.0:
        refuse(event, "a part is from 0 to 1")
    job = job_of(state, event)
    next_state(event, job.state if job else JobState.ENDED)
    return job if job is not None and job.state is JobState.RUNNING else None


def warn(state: State, decision: Warn) -> None:
    job, use = _low_job(state, decision)
    if use.warned is not None or use.lowered is not None:
        refuse(decision, "the job is warned or lowered already")
    if not decision.at <= decision.until < float("inf"):
        refuse(decision, "a warning says until when")
    after = replace(use, warned=decision, warned_at=decision.at)
    put(state, evolve(job, use=after), before=job)


def lower(state: State, decision: Lower) -> None:
    job, use = _low_job(state, decision)
    if use.warned is None or use.warned.until > decision.at:
        refuse(decision, "the job was not warned for long enough")
    put(state, evolve(job, use=replace(use, warned=None, lowered=decision)), before=job)


def raise_(state: State, decision: Raise) -> None:
    job, use = _measured_job(state, decision)
    if use.lowered is None or use.risen_since is None:
        refuse(decision, "the job is not lowered, or its use did not rise")
    put(state, evolve(job, use=replace(use, lowered=None, risen_since=None)), before=job)


def _low_job(state: State, decision: Warn | Lower) -> tuple[Job, Use]:
    job, use = _measured_job(state, decision)
    if use.low_since is None:
        refuse(decision, "the job's use is not low")
    return job, use


def _measured_job(state: State, decision: Warn | Lower | Raise) -> tuple[Job, Use]:
    job = state.jobs.get(decision.job)
    next_state(decision, job.state if job else None)
    if job is None or job.grant is None or job.grant.lease != decision.lease:
        refuse(decision, "the job does not hold this lease")
    if job.use is None:
        refuse(decision, "nothing was told of the job's use")
    return job, job.use
