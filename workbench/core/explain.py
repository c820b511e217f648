"""Why a job is where it is, and when it likely starts: one sentence, one range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from workbench.core import booking_reasons
from workbench.core.errors import UserError
from workbench.core.estimate import estimate
from workbench.core.explain_gpus import why_no_gpus
from workbench.core.job import Job
from workbench.core.model import (
    After,
    JobId,
    JobKind,
    JobState,
    Seconds,
    Shape,
)
from workbench.core.moving import why_it_moves
from workbench.core.placement import shapes_wanted
from workbench.core.quotas import Account, Limits
from workbench.core.sooner import sooner
from workbench.core.spelling import count, short_job, spell_bytes, spell_seconds
from workbench.core.standings import Standings, in_order
from workbench.core.state import THIS_HOST, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Where a job stands.

    Attributes:
        place: Among all waiting jobs, 1 is next; None unless it waits.
        reason: Why it waits, why it runs where it does, or how it ended; one sentence without its
            full stop, empty for a job that is done.
        low_s: The soonest start in seconds from now; None is unknown or does not wait.
        high_s: The latest start if what `estimate_reason` assumes holds; None likewise.
        estimate_reason: What the range rests on, or why it is unknown; empty unless it waits.
        sooner: What would make it start sooner, the most like what it asks for first; only of a
            job that is explained alone.
    """

    place: int | None
    reason: str
    low_s: Seconds | None
    high_s: Seconds | None
    estimate_reason: str
    sooner: tuple[str, ...] = ()


def _in_lab_seconds(at: Seconds) -> str:
    return f"{at:.0f} s"


def explain(
    state: State,
    standings: Standings,
    job: JobId,
    *,
    spell_at: Callable[[Seconds], str] = _in_lab_seconds,
) -> Explanation:
    """Explains one job; to explain many, `explain_waiting` orders the queue once.

    Args:
        state: The state; it is not changed.
        standings: Where its jobs stand.
        job: Its id.
        spell_at: Spells a time for people, of which the core knows nothing; without one it is
            given in seconds of the lab's clock.

    Returns:
        Where it stands now.

    Raises:
        UserError: No such job is known.
    """
    known = state.find(job)
    if known is None:
        message = f"no job {job} is known here"
        raise UserError(message, next_step="`workbench jobs` lists the jobs")
    if known.state is JobState.QUEUED or known.state is JobState.SUSPENDED:
        waiting = explain_waiting(state, standings, spell_at=spell_at)
        if known.state is JobState.SUSPENDED:
            return waiting[job]
        return replace(waiting[job], sooner=sooner(state, standings, known))
    reason = known.detail
    if known.state is not JobState.ENDED:
        decision = known.stop or known.preempt or known.grant
        reason = decision.reason if decision else ""
        if known.ladder is not None and decision is known.grant:
            reason = known.ladder.why or reason
        reason = why_it_moves(known, spell_at) or reason
        if state.bookings and known.grant is not None and decision is known.grant:
            reason = booking_reasons.overstays(state, known.grant.lease) or reason
        if known.state is JobState.STARTING:
            if known.owner not in state.agents:
                reason = _NO_AGENT
            elif known.request.kind is JobKind.KERNEL:
                reason = _READY
    return Explanation(place=None, reason=reason, low_s=None, high_s=None, estimate_reason="")


def explain_waiting(
    state: State, standings: Standings, *, spell_at: Callable[[Seconds], str] = _in_lab_seconds
) -> dict[JobId, Explanation]:
    """Explains all waiting jobs.

    Args:
        state: The state; it is not changed.
        standings: Where its jobs stand.
        spell_at: As for `explain`.

    Returns:
        Where each stands now, the next one first.
    """
    order = in_order(state, standings)
    limits = Limits(state, standings.settings)
    estimates = estimate(state, limits, order)
    calendar = booking_reasons.Calendar(state, standings.settings) if state.bookings else None
    reasons: dict[tuple[bool, Account, tuple[Shape, ...], object], str] = {}
    explanations: dict[JobId, Explanation] = {}
    for place, job in enumerate(order, start=1):
        shapes, booked = shapes_wanted(job), calendar.kind(job) if calendar else None
        kind = (job.owner in state.agents, Account.of(job), shapes, booked)
        if kind not in reasons:
            reasons[kind] = _why_it_waits(state, job, limits, calendar)
        range_ = estimates[job.id]
        reason = reasons[kind]
        if job.ladder is not None:
            reason = f"it is suspended: {job.ladder.why}; {reason}"
        if job.use is not None:
            reason += f"; it {why_it_moves(job, spell_at)}"
        explanations[job.id] = Explanation(
            place=place,
            reason=reason,
            low_s=range_.low_s,
            high_s=range_.high_s,
            estimate_reason=range_.reason,
        )
    for job in state.jobs.values():
        if job.state is JobState.QUEUED and job.id not in explanations:
            explanations[job.id] = _put_off(state, job)
    return explanations


def _put_off(state: State, job: Job) -> Explanation:
    """Explains a job that waits for something other than units."""
    reasons, low_s = [], None
    if job.is_held:
        reasons.append("it is held until its owner releases it")
    reasons += [
        f"it waits for {short_job(one.job)} to {_ENDINGS[one.after]}"
        for one in job.request.after
        if one.job in job.waits_for
    ]
    if job.queued_at > state.at:
        low_s = job.queued_at - state.at
        when = f"in {spell_seconds(low_s)} at the soonest"
        if job.failures:
            tries = f"try {job.failures + 1} of {job.request.retries + 1}"
            reasons.append(f"it starts again {when}, {tries}; the last one {job.detail}")
        else:
            reasons.append(f"it starts {when}, as asked for")
    reason = "; ".join(reasons)
    why = "unknown: it does not wait for units yet"
    return Explanation(place=None, reason=reason, low_s=low_s, high_s=None, estimate_reason=why)


_ENDINGS = {After.OK: "be done", After.ANY: "end", After.FAIL: "end without being done"}
_READY = "ready: start the kernel"
_NO_AGENT = "its agent is not running: open Jupyter or run `workbench up`"


def _why_it_waits(
    state: State, job: Job, limits: Limits, calendar: booking_reasons.Calendar | None
) -> str:
    if job.owner not in state.agents:
        return _NO_AGENT
    account, shapes = Account.of(job), shapes_wanted(job)
    allowed = limits.allowed(account, shapes)
    if not allowed:
        return "; ".join(limits.against(account, shapes[0]))
    reasons = [_why_no_units(state, job, shape, calendar) for shape in allowed]
    why = ", or ".join(reason for reason in reasons if reason) or "it is about to start"
    if account.is_high and not limits.may_be_high(account.owner):
        why = f"it counts as class normal, its owner's budget of class high is used; {why}"
    return why


def _why_no_units(
    state: State, job: Job, shape: Shape, calendar: booking_reasons.Calendar | None
) -> str:
    if shape.gpus and state.held is not None:
        return f"no GPU is handed out now: {state.held}"
    if THIS_HOST in state.drained:
        return f"this host is drained, nothing new starts: {state.drained[THIS_HOST]}"
    reasons = [
        why_no_gpus(state, shape, calendar.closed(job) if calendar else {}),
        _why_no_cores(state, shape),
        _why_no_memory(state, shape),
    ]
    if calendar is not None and not any(reasons):
        reasons.append(calendar.keeps_off(job, shape))
    return "; ".join(reason for reason in reasons if reason)


def _why_no_cores(state: State, shape: Shape) -> str:
    cores = state.host.cores if state.host else 0
    free = max(cores - state.leased_cores, 0)
    if shape.cores <= free:
        return ""
    return f"it waits for {count(shape.cores, 'core')}, {free} of {cores} free"


def _why_no_memory(state: State, shape: Shape) -> str:
    memory_bytes = state.host.memory_bytes if state.host else 0
    free = max(memory_bytes - state.leased_memory_bytes, 0)
    if shape.memory_bytes <= free:
        return ""
    wanted, all_ = spell_bytes(shape.memory_bytes), spell_bytes(memory_bytes)
    return f"it waits for {wanted} of host memory, {spell_bytes(free)} of {all_} free"
