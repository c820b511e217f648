"""Folds the milder steps of preemption, which leave a job its lease: shrink and suspend, and back.

    Shrink ─ LeaseShrunk       its GPUs stay its own until the event
    Suspend ─ LeaseSuspended   its cores stay its own until the event
    Grow ─ LeaseGrown          the GPUs are its own from the decision on
    Resume ─ LeaseResumed      the cores are its own from the decision on

What confirms a step that another one has overtaken, or that was confirmed before, changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from workbench.core import fairness, quotas
from workbench.core.decisions import Grant, Grow, Resume, Shrink, Suspend
from workbench.core.events import LeaseGrown, LeaseResumed, LeaseShrunk, LeaseSuspended
from workbench.core.filing import put
from workbench.core.folds.bookings import booked_by_others, note_use
from workbench.core.folds.commits import holding_job
from workbench.core.folds.leases import forget_yielding, job_of
from workbench.core.folds.units import give_back, may_be_leased, take
from workbench.core.job import Job, Ladder, evolve, is_shrunk, served_s
from workbench.core.model import DeviceId, JobState, Preemption, Seconds, Units
from workbench.core.state import State
from workbench.core.transitions import next_state, refuse
from workbench.core.use import Use


def shrink(state: State, decision: Shrink) -> None:
    job, following, grant = holding_job(state, decision)
    left = len(grant.units.gpus) - len(decision.gpus)
    if Preemption.SHRINK not in job.request.preemption or left < (job.request.min_gpus or 1):
        refuse(decision, f"the job keeps at least {job.request.min_gpus} GPUs")
    if grant.units.share_bytes or any(state.devices[gpu].mig for gpu in decision.gpus):
        refuse(decision, "neither shares nor slices are given back one by one")
    if not decision.gpus or not set(decision.gpus) < set(grant.units.gpus):
        refuse(decision, "a job gives some of the GPUs that it has")
    _check_nothing_is_pending(decision, job)
    state.yielding[decision.winner] = (*state.yielding.get(decision.winner, ()), job.id)
    ladder = replace(_ladder_of(job, grant), shrink=decision, why=decision.reason)
    put(state, evolve(job, state=following, ladder=ladder), before=job)


def suspend(state: State, decision: Suspend) -> None:
    job, following, grant = holding_job(state, decision)
    if Preemption.SUSPEND not in job.request.preemption:
        refuse(decision, f"the job gives way by {job.request.preemption}")
    _check_nothing_is_pending(decision, job)
    state.yielding[decision.winner] = (*state.yielding.get(decision.winner, ()), job.id)
    ladder = replace(_ladder_of(job, grant), suspend=decision, why=decision.reason)
    put(state, evolve(job, state=following, ladder=ladder), before=job)


def grow(state: State, decision: Grow) -> None:
    job, following, grant = holding_job(state, decision)
    ladder, units = _ladder_of(job, grant), grant.units
    gpus = units.gpus + decision.gpus
    if not decision.gpus or len(set(gpus)) != len(gpus) or len(gpus) > len(ladder.granted.gpus):
        refuse(decision, f"the job was granted {len(ladder.granted.gpus)} different GPUs")
    for gpu in decision.gpus:
        device = state.devices.get(gpu)
        if device is None or device.mig or not may_be_leased(state, device, units):
            refuse(decision, f"{gpu} is leased, unknown or not available")
    if len({state.devices[gpu].simulated for gpu in gpus}) > 1:
        refuse(decision, "simulated and real GPUs are never mixed")
    if state.booked and (others := booked_by_others(state, job.owner, decision.gpus)):
        refuse(decision, f"{others[0]} is booked by somebody else")
    _check_nothing_is_pending(decision, job)
    after = evolve(job, state=following, ladder=replace(ladder, grow=decision))
    _hold(state, after, replace(units, gpus=gpus), decision.at, before=job)


def resume(state: State, decision: Resume) -> None:
    job, following, grant = holding_job(state, decision)
    ladder = _ladder_of(job, grant)
    if decision.cores != ladder.granted.cores:
        refuse(decision, f"the job was granted {ladder.granted.cores} cores")
    if state.host is None or decision.cores > state.host.cores - state.leased_cores:
        refuse(decision, "that many cores are not free")
    after = evolve(
        job,
        state=following,
        ladder=replace(ladder, resume=decision),
        is_settled=decision.is_settled,
        use=None,
    )
    _hold(state, after, replace(grant.units, cores=decision.cores), decision.at, before=job)


def lease_shrunk(state: State, event: LeaseShrunk) -> None:
    job = job_of(state, event)
    following = next_state(event, job.state if job else JobState.ENDED)
    pending = job.ladder.shrink if job and job.ladder else None
    if job is None or job.grant is None or job.ladder is None or pending is None:
        return
    gone = dict.fromkeys(event.gpus)
    if gone.keys() != set(pending.gpus):
        refuse(event, f"the job was asked for {pending.gpus}")
    forget_yielding(state, pending)
    units = job.grant.units
    left: tuple[DeviceId, ...] = tuple(gpu for gpu in units.gpus if gpu not in gone)
    after = evolve(job, state=following, ladder=replace(job.ladder, shrink=None))
    _hold(state, after, replace(units, gpus=left), event.at, before=job)


def lease_suspended(state: State, event: LeaseSuspended) -> None:
    job = job_of(state, event)
    following = next_state(event, job.state if job else JobState.ENDED)
    pending = job.ladder.suspend if job and job.ladder else None
    if job is None or job.grant is None or job.ladder is None or pending is None:
        return
    forget_yielding(state, pending)
    after = evolve(
        job,
        state=following,
        ladder=replace(job.ladder, suspend=None),
        queued_at=event.at,
        use=_kept_use(job),
        progress=None if job.progress is None else replace(job.progress, nearly_done_from=None),
        served_s=served_s(job, event.at),
        started_at=None,
    )
    _hold(state, after, replace(job.grant.units, cores=0), event.at, before=job)


def lease_grown(state: State, event: LeaseGrown) -> None:
    job = job_of(state, event)
    following = next_state(event, job.state if job else JobState.ENDED)
    if job is not None and job.ladder is not None and job.ladder.grow is not None:
        ladder = replace(job.ladder, grow=None) if is_shrunk(job) else None
        put(state, evolve(job, state=following, ladder=ladder), before=job)


def lease_resumed(state: State, event: LeaseResumed) -> None:
    job = job_of(state, event)
    following = next_state(event, job.state if job else JobState.ENDED)
    if job is not None and job.ladder is not None and job.ladder.resume is not None:
        ladder = replace(job.ladder, resume=None) if is_shrunk(job) else None
        after = evolve(job, state=following, ladder=ladder, started_at=event.at)
        put(state, after, before=job)


def _ladder_of(job: Job, grant: Grant) -> Ladder:
    return job.ladder or Ladder(granted=grant.units)


def _check_nothing_is_pending(decision: Shrink | Suspend | Grow, job: Job) -> None:
    if job.ladder is not None and job.ladder.pending is not None:
        refuse(decision, f"{job.ladder.pending} is not confirmed yet")


def _hold(state: State, job: Job, units: Units, at: Seconds, *, before: Job) -> None:
    """Replaces what a lease holds."""
    assert before.grant is not None
    old, lease = before.grant.units, before.grant.lease
    given = tuple(gpu for gpu in old.gpus if gpu not in units.gpus)
    added = tuple(gpu for gpu in units.gpus if gpu not in old.gpus)
    give_back(state, lease, Units(gpus=given, cores=old.cores))
    take(state, lease, Units(gpus=added, cores=units.cores))
    change = fairness.weight(state, units) - fairness.weight(state, old)
    fairness.charge(state, job.owner, at, change)
    if given or added:
        quotas.charge_gpus(state, job, at, len(added) - len(given))
    if state.booked:
        note_use(state, job.owner, Units(gpus=given + added), at)
    put(state, evolve(job, grant=replace(before.grant, units=units)), before=before)


def _kept_use(job: Job) -> Use | None:
    """Forgets what was told of a lease that stands still, but for whether it counts lower."""
    use = job.use
    if use is None or use.lowered is None:
        return None
    return Use(part=use.part, lowered=use.lowered)
