"""What must hold of every state; tests check it after each event."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.core.errors import BrokenInvariant
from workbench.core.job import Job, claims_of, deadline_of, is_shrunk
from workbench.core.model import DeviceId, DeviceStatus, JobId, JobState, LeaseId
from workbench.core.state import ENDED_JOBS_KEPT, State

_UNLEASED = (JobState.QUEUED, JobState.ENDED)
_PENDING = {
    JobState.SHRINKING: "shrink",
    JobState.SUSPENDING: "suspend",
    JobState.RESUMING: "resume",
}


def check(state: State) -> None:
    """Compares the state's parts with one another.

    Args:
        state: A state between two events; it is not changed.

    Raises:
        BrokenInvariant: It contradicts itself; all contradictions are named.
    """
    broken = [*_jobs(state), *_ladders(state), *_ended(state), *_leases(state), *_counters(state)]
    broken.extend(
        f"{device.id} is available and yet {device.reason}"
        for device in state.devices.values()
        if device.status is DeviceStatus.AVAILABLE and device.reason
    )
    if state.cancelling:
        broken.append(f"cancels were not decided on: {list(state.cancelling)}")
    if broken:
        raise BrokenInvariant("; ".join(broken))


def _jobs(state: State) -> Iterator[str]:
    numbers = [job.number for job in state.jobs.values()]
    if numbers != sorted(numbers):
        yield "live jobs are not in the order of submission"
    for job_id, job in state.jobs.items():
        if job.id != job_id:
            yield f"job {job.id} is filed under {job_id}"
        if job.state is JobState.ENDED or job.outcome is not None or job.ended_at is not None:
            yield f"live job {job_id} has ended"
        if (job.state not in _UNLEASED) != (job.grant is not None):
            yield f"{job.state} job {job_id} has the grant {job.grant}"
        if (job.state is JobState.PREEMPTING) != (job.preempt is not None):
            yield f"{job.state} job {job_id} has the preemption {job.preempt}"
        if (job.state is JobState.STOPPING) != (job.stop is not None):
            yield f"{job.state} job {job_id} has the stop {job.stop}"
        if job.state is JobState.RUNNING and job.started_at is None:
            yield f"running job {job_id} never started"
    due = sorted(deadline for job in state.jobs.values() if (deadline := deadline_of(job)))
    if state.deadlines != due:
        yield f"deadlines are {state.deadlines}, not {due}"


def _ladders(state: State) -> Iterator[str]:
    for job_id, job in state.jobs.items():
        step = _PENDING.get(job.state)
        if step is not None and getattr(job.ladder, step, None) is None:
            yield f"{job.state} job {job_id} has no decision to {step}"
        if job.state is JobState.SUSPENDED and (job.ladder is None or job.started_at is not None):
            yield f"suspended job {job_id} runs"
    suspended = [job.id for job in state.jobs.values() if job.state is JobState.SUSPENDED]
    if sorted(state.suspended) != sorted(suspended):
        yield f"suspended jobs are {list(state.suspended)}, not {suspended}"
    running = [job for job in state.jobs.values() if job.state is JobState.RUNNING]
    shrunk = [job.id for job in running if is_shrunk(job)]
    if sorted(state.shrunk) != sorted(shrunk):
        yield f"shrunk jobs are {list(state.shrunk)}, not {shrunk}"


def _ended(state: State) -> Iterator[str]:
    if len(state.ended) > ENDED_JOBS_KEPT:
        yield f"{len(state.ended)} ended jobs are kept"
    for job_id, job in state.ended.items():
        if job_id in state.jobs:
            yield f"job {job_id} is both live and ended"
        if job.state is not JobState.ENDED or job.outcome is None or job.ended_at is None:
            yield f"ended job {job_id} is {job.state} with the outcome {job.outcome}"


def _leases(state: State) -> Iterator[str]:
    live = [(job.grant, job) for job in state.jobs.values() if job.grant is not None]
    if dict(state.leases) != {grant.lease: job.id for grant, job in live}:
        yield f"leases are {state.leases}"
    holders: dict[DeviceId, LeaseId] = {}
    for grant, job in live:
        yield from _gang(state, job)
        for gpu in grant.units.gpus:
            if gpu in holders:
                yield f"{gpu} is leased to {holders[gpu]} and {grant.lease}"
            holders[gpu] = grant.lease
    if state.holders != holders:
        yield f"holders are {state.holders}, not {holders}"
    yielding: dict[JobId, tuple[JobId, ...]] = {}
    claims = [claim for job in state.jobs.values() for claim in claims_of(job)]
    for claim in sorted(claims, key=lambda decision: decision.id):
        yielding[claim.winner] = (*yielding.get(claim.winner, ()), claim.job)
    if state.yielding != yielding:
        yield f"jobs give way as {state.yielding}, not {yielding}"
    if state.leased_cores != sum(grant.units.cores for grant, _ in live):
        yield f"leased cores are {state.leased_cores}"
    if state.leased_memory_bytes != sum(grant.units.memory_bytes for grant, _ in live):
        yield f"leased memory is {state.leased_memory_bytes}"


def _gang(state: State, job: Job) -> Iterator[str]:
    gpus = job.grant.units.gpus if job.grant else ()
    least = job.request.gpus if job.ladder is None else job.request.min_gpus or job.request.gpus
    if not least <= len(gpus) <= job.request.gpus:
        yield f"job {job.id} asked for {job.request.gpus} GPUs and has {gpus}"
    unknown = [gpu for gpu in gpus if gpu not in state.devices]
    if unknown:
        yield f"job {job.id} has unknown GPUs: {unknown}"
    elif len({state.devices[gpu].simulated for gpu in gpus}) > 1:
        yield f"job {job.id} has simulated and real GPUs: {gpus}"


def _counters(state: State) -> Iterator[str]:
    known = [*state.jobs.values(), *state.ended.values()]
    if any(job.number >= state.next_job for job in known):
        yield f"a job has a number of {state.next_job} or more"
    decisions = [decision for job in known for decision in (job.grant, job.stop) if decision]
    if any(decision.id >= state.next_decision for decision in decisions):
        yield f"a decision has an id of {state.next_decision} or more"
    if any(int(lease.removeprefix("L")) >= state.next_lease for lease in state.leases):
        yield f"a lease has a number of {state.next_lease} or more"
