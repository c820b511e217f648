"""State as its readers may see it. Another user's names and reasons in words are not shown."""

from __future__ import annotations

import functools
import pwd
import time
from collections.abc import Sequence
from typing import Final, Literal, cast

import msgspec

from workbench.controller.clock import LabClock
from workbench.core.explain import Explanation, explain, explain_waiting
from workbench.core.job import Job
from workbench.core.model import JobId, JobState, Request, Uid
from workbench.core.notices import ITS_TURN
from workbench.core.spelling import spell_span
from workbench.core.standings import Standings
from workbench.core.state import State
from workbench.protocol.messages import ControllerView, Estimate, JobView, RequestSpec, Status
from workbench.protocol.telemetry import Sample
from workbench.protocol.text import visible

ENDED_SHOWN: Final = 20
_AS_SHOWN: Final = {
    JobState.SHRINKING: "running",
    JobState.SUSPENDING: "stopping",
    JobState.SUSPENDED: "queued",
    JobState.RESUMING: "starting",
    JobState.PREEMPTING: "stopping",
}


class LabPicture:
    """The lab at one moment.

    Args:
        controller: Who serves.
        state: What the core knows; read at once, not kept.
        standings: Where its jobs stand.
        clock: Turns the core's times into the host's.
        sample: The newest one; None before the first.
        notices: Sentences for everybody.
    """

    def __init__(
        self,
        *,
        controller: ControllerView,
        state: State,
        standings: Standings,
        clock: LabClock,
        sample: Sample | None,
        notices: Sequence[str],
    ) -> None:
        self._controller = controller
        self._sample = sample
        self._notices = list(notices)
        self._clock = clock
        self._all_ended = state.ended
        self._explain = functools.partial(explain, state, standings, spell_at=self._spell_at)
        waiting = explain_waiting(state, standings, spell_at=self._spell_at)
        running = [job for job in state.jobs.values() if job.id not in waiting]
        self._live = [
            *(self._view(job) for job in running),
            *(self._view(state.jobs[job], why) for job, why in waiting.items()),
        ]
        latest = list(state.ended.values())[-ENDED_SHOWN:]
        self._ended = [self._view(job) for job in reversed(latest)]

    def status_for(self, uid: Uid, *, job: str | None = None) -> Status:
        """Return what `uid` may see, of one job only where `job` is given."""
        live, ended = self._live, self._ended
        if job is not None:
            live = [view for view in live if view.id == job]
            found = None if live else self._all_ended.get(JobId(job))
            ended = [self._view(found)] if found is not None else []
        return Status(
            controller=self._controller,
            sample=self._sample,
            jobs=[_shown_to(uid, view) for view in live],
            ended=[_shown_to(uid, view) for view in ended],
            notices=self._notices,
        )

    def _spell_at(self, at: float) -> str:
        """Spell a time of the lab's clock on the host's wall clock."""
        then_s, now_s = self._clock.unix_s(at), self._clock.unix_s(self._clock.now())
        then, now = time.localtime(then_s), time.localtime(now_s)
        text = time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)
        return f"{text} (in {spell_span(then_s - now_s)})" if then_s > now_s else text

    def _view(self, job: Job, why: Explanation | None = None) -> JobView:
        """Return a job as its owner sees it."""
        why = self._explain(job.id) if why is None else why
        is_plain = job.grant is not None and job.stop is None and why.reason.endswith(ITS_TURN)
        reason = "" if is_plain else " ".join(why.reason.split())
        unix_s = self._clock.unix_s
        units = job.grant.units if job.grant is not None else None
        return JobView(
            id=job.id,
            owner_uid=job.owner,
            owner=owner_name(job.owner),
            mine=True,
            kind=job.request.kind,
            name=visible(job.name),
            notebook=None if job.notebook is None else visible(job.notebook),
            priority=job.request.priority,
            state=_state_of(job),
            place=why.place,
            reason=visible(reason),
            estimate=_estimate(why),
            request=_spec_of(job.request),
            gpus=list(units.gpus) if units is not None else [],
            cores=units.cores if units is not None else job.request.cores,
            submitted_unix_s=unix_s(job.submitted_at),
            started_unix_s=None if job.started_at is None else unix_s(job.started_at),
            ended_unix_s=None if job.ended_at is None else unix_s(job.ended_at),
            outcome=None if job.outcome is None else job.outcome.value,
        )


def _shown_to(uid: Uid, view: JobView) -> JobView:
    """Hide of another user's job its names, and what its agent said about how it ended."""
    if view.owner_uid == uid:
        return view
    reason = "" if view.outcome is not None else view.reason
    return msgspec.structs.replace(view, mine=False, name=None, notebook=None, reason=reason)


def _state_of(job: Job) -> Literal["queued", "starting", "running", "stopping", "ended"]:
    """Return the state as front-ends know it: one that stands still waits, as it was queued."""
    state = _AS_SHOWN.get(job.state, job.state.value)
    return cast("Literal['queued', 'starting', 'running', 'stopping', 'ended']", state)


def _estimate(why: Explanation) -> Estimate | None:
    if why.place is None:
        return None
    return Estimate(low_s=why.low_s, high_s=why.high_s, reason=why.estimate_reason)


def _spec_of(request: Request) -> RequestSpec:
    return RequestSpec(
        kind=request.kind.value,
        priority=request.priority.value,
        gpus=request.gpus,
        cores=request.cores,
        memory_bytes=request.memory_bytes,
        gpu_memory_bytes=request.gpu_memory_bytes,
        time_limit_s=request.time_limit_s,
        wait_limit_s=request.wait_limit_s,
    )


@functools.lru_cache(maxsize=1024)
def owner_name(uid: int) -> str:
    """Return the user's login name, or the number where the host knows none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
