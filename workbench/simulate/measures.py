"""What the live sampler would tell of a simulated lease: its use crossing thresholds, its progress.

A job uses its GPUs wholly, but for the one span of its service in which it leaves them idle. Use is
its mean over the sampler's window, so it crosses a threshold some time after the span begins or
ends. What a restart costs sets a job back by as much service.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Final

from workbench.core.events import ProgressMade, UseFell, UseRose
from workbench.core.model import LeaseId, Seconds
from workbench.core.use import FELL_BELOW, REPORT_S, ROSE_ABOVE, WINDOW_S
from workbench.simulate.workload import SimJob

Measure = UseFell | UseRose | ProgressMade
_REPORTS: Final = 20
"""So often at most a job says how far it is."""
_JUST: Final = 1e-3
"""A threshold is told once it is passed by this part, not when it is met."""


def measures(job: SimJob, lease: LeaseId, start_s: Seconds, begin_s: Seconds) -> Iterator[Measure]:
    """List what is told of a lease if nothing ends it before the job is done.

    Args:
        job: Holds the lease.
        lease: The lease.
        start_s: When it began.
        begin_s: When the job would have begun if all its service were in this lease.

    Returns:
        In the order of time, all of it after the start and before the job's end.
    """
    told = merge(_use(job, lease, start_s, begin_s), _progress(job, lease, begin_s), key=_at)
    end_s = begin_s + job.service_s
    return (one for one in told if start_s < one.at < end_s)


def _at(measure: Measure) -> Seconds:
    return measure.at


def _use(job: SimJob, lease: LeaseId, start_s: Seconds, begin_s: Seconds) -> Iterator[Measure]:
    if job.idle_from_s is None:
        return
    idle_s = max(begin_s + job.idle_from_s, start_s)
    busy_s = begin_s + job.idle_from_s + job.idle_for_s
    fell_s = max(idle_s + WINDOW_S * (1 - FELL_BELOW + _JUST), start_s + WINDOW_S)
    if fell_s >= busy_s:
        return
    part = max(idle_s - max(fell_s - WINDOW_S, start_s), 0.0) / WINDOW_S
    yield UseFell(at=fell_s, lease=lease, part=part)
    part = ROSE_ABOVE + _JUST
    yield UseRose(at=max(busy_s + WINDOW_S * part, fell_s + REPORT_S), lease=lease, part=part)


def _progress(job: SimJob, lease: LeaseId, begin_s: Seconds) -> Iterator[Measure]:
    if not job.reports_progress:
        return
    step_s = max(REPORT_S, job.service_s / _REPORTS)
    served_s = step_s
    while served_s < job.service_s:
        part = served_s / job.service_s
        yield ProgressMade(at=begin_s + served_s, lease=lease, part=part)
        served_s += step_s
