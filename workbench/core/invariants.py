"""What must hold of every state; tests check it after each event."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose

from workbench.core import fairness
from workbench.core.calendar import Booked, BookingId
from workbench.core.errors import BrokenInvariant
from workbench.core.job import Job, claims_of, deadline_of, is_shrunk
from workbench.core.model import (
    DeviceId,
    DeviceStatus,
    JobId,
    JobState,
    LeaseId,
    PriorityClass,
    Uid,
)
from workbench.core.placement import shapes_of
from workbench.core.quotas import counts_as
from workbench.core.state import ENDED_JOBS_KEPT, Sharer, State, Tally
from workbench.core.use import Use

_NEARLY = 1e-6
_UNLEASED = (JobState.QUEUED, JobState.ENDED)
_PENDING = {
    JobState.SHRINKING: "shrink",
    JobState.SUSPENDING: "suspend",
    JobState.RESUMING: "resume",
}
_BACK = (JobState.QUEUED, JobState.SUSPENDED, JobState.RESUMING)


def check(state: State) -> None:
    """Compares the state's parts with one another.

    Args:
        state: A state between two events; it is not changed.

    Raises:
        BrokenInvariant: It contradicts itself; all contradictions are named.
    """
    broken = [*_jobs(state), *_putting_off(state), *_ladders(state), *_ended(state)]
    broken += [*_bookings(state), *_leases(state), *_tallies(state), *_counters(state)]
    broken.extend(
        f"{device.id} is available and yet {device.reason}"
        for device in state.devices.values()
        if device.status is DeviceStatus.AVAILABLE and device.reason
    )
    slices: dict[DeviceId, tuple[DeviceId, ...]] = {}
    for device in state.devices.values():
        if device.parent is not None:
            slices[device.parent] = (*slices.get(device.parent, ()), device.id)
    if state.slices != slices:
        broken.append(f"slices are {state.slices}, not {slices}")
    if not broken:
        broken.extend(_rates(state))
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
        if (job.state is JobState.PREEMPTING) != (job.preempt is not None and job.stop is None):
            yield f"{job.state} job {job_id} has the preemption {job.preempt}"
        if (job.state is JobState.STOPPING) != (job.stop is not None):
            yield f"{job.state} job {job_id} has the stop {job.stop}"
        if job.state is JobState.RUNNING and job.started_at is None:
            yield f"running job {job_id} never started"
        yield from _measured(job)
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


def _putting_off(state: State) -> Iterator[str]:
    dependents: dict[JobId, tuple[JobId, ...]] = {}
    for job in state.jobs.values():
        for one in job.waits_for:
            dependents[one] = (*dependents.get(one, ()), job.id)
        if (job.put_off_at is not None) != (job.is_held or bool(job.waits_for)):
            yield f"job {job.id} is put off since {job.put_off_at}"
        if job.put_off_at is not None and job.grant is not None:
            yield f"job {job.id} has a lease and is put off"
    if state.dependents != dependents:
        yield f"jobs wait for others as {state.dependents}, not {dependents}"


def _tallies(state: State) -> Iterator[str]:
    """Checks what users and groups hold."""
    arrays: dict[Uid, dict[str, int]] = {}
    held: dict[tuple[str, Uid | str], list[int]] = {}
    for job in state.jobs.values():
        if job.grant is None:
            continue
        accounts: list[tuple[str, Uid | str]] = [("user", job.owner)]
        if job.group:
            accounts.append(("group", job.group))
        if job.request.priority is counts_as(job) is PriorityClass.HIGH:
            accounts.append(("high", job.owner))
        for account in accounts:
            sums = held.setdefault(account, [0, 0])
            sums[0] += 1
            sums[1] += len(job.grant.units.gpus)
        if job.request.array is not None:
            counts = arrays.setdefault(job.owner, {})
            counts[job.request.array.id] = counts.get(job.request.array.id, 0) + 1
    known: list[tuple[str, Uid | str, Tally]] = [
        *(("user", owner, tally) for owner, tally in state.users.items()),
        *(("group", group, tally) for group, tally in state.groups.items()),
        *(("high", owner, tally) for owner, tally in state.high.items()),
    ]
    now = {(kind, key): [one.leases, one.gpus] for kind, key, one in known if one.leases}
    if now != held:
        yield f"tallies are {now}, not {held}"
    if state.arrays != arrays:
        yield f"arrays hold {state.arrays}, not {arrays}"


def _measured(job: Job) -> Iterator[str]:
    use, progress = job.use, job.progress
    if use is not None:
        is_back = job.state in _BACK and use == Use(part=use.part, lowered=use.lowered)
        if job.started_at is None and not (is_back and use.lowered is not None):
            yield f"{job.state} job {job.id} has the use {use}"
        if use.low_since is None and use.warned is not None:
            yield f"job {job.id} is warned and its use is not low"
        if use.lowered is not None and use.warned is not None:
            yield f"job {job.id} is lowered and still warned"
        if use.risen_since is not None and (use.low_since is not None or use.lowered is None):
            yield f"job {job.id} may be raised and is low or not lowered"
    if progress is not None and not 0.0 <= progress.part <= 1.0:
        yield f"job {job.id} has the progress {progress.part}"


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
    yield from _units(state, [job for _, job in live])
    yield from _yielding(state)
    if state.leased_cores != sum(grant.units.cores for grant, _ in live):
        yield f"leased cores are {state.leased_cores}"
    if state.leased_memory_bytes != sum(grant.units.memory_bytes for grant, _ in live):
        yield f"leased memory is {state.leased_memory_bytes}"


def _units(state: State, live: list[Job]) -> Iterator[str]:
    holders: dict[DeviceId, LeaseId] = {}
    sharers: dict[DeviceId, dict[Sharer, None]] = {}
    for job in live:
        yield from _gang(state, job)
        assert job.grant is not None
        units, lease = job.grant.units, job.grant.lease
        for gpu in units.gpus:
            if units.share_bytes:
                sharers.setdefault(gpu, {})[Sharer(lease, units.share_bytes)] = None
                continue
            if gpu in holders:
                yield f"{gpu} is leased to {holders[gpu]} and {lease}"
            holders[gpu] = lease
    if state.holders != holders:
        yield f"holders are {state.holders}, not {holders}"
    if {gpu: dict.fromkeys(leases) for gpu, leases in state.sharers.items()} != sharers:
        yield f"sharers are {state.sharers}, not {sharers}"
    yield from (
        f"{gpu} is shared and leased to {holders[gpu]}" for gpu in sharers if gpu in holders
    )


def _yielding(state: State) -> Iterator[str]:
    yielding: dict[JobId, tuple[JobId, ...]] = {}
    claims = [claim for job in state.jobs.values() for claim in claims_of(job)]
    for claim in sorted(claims, key=lambda decision: decision.id):
        if claim.winner is not None:
            yielding[claim.winner] = (*yielding.get(claim.winner, ()), claim.job)
    if state.yielding != yielding:
        yield f"jobs give way as {state.yielding}, not {yielding}"


def _bookings(state: State) -> Iterator[str]:
    booked: dict[DeviceId, BookingId] = {}
    for booking_id, one in state.bookings.items():
        if one.booking.id != booking_id:
            yield f"booking {one.booking.id} is filed under {booking_id}"
        if one.end_at <= state.at or one.number >= state.next_booking:
            yield f"booking {booking_id} is over, or its number is {state.next_booking} or more"
        if one.gpus and (not one.is_open or one.is_released):
            yield f"booking {booking_id} has {one.gpus} and is not open"
        is_idle = one.is_open and not one.is_released and not _is_used(state, one)
        if (one.unused_since is not None) != is_idle:
            yield f"booking {booking_id} is unused since {one.unused_since}"
        for gpu in one.gpus:
            if gpu in booked:
                yield f"{gpu} is booked by {booked[gpu]} and {booking_id}"
            booked[gpu] = booking_id
    if state.booked != booked:
        yield f"booked are {state.booked}, not {booked}"
    ends_at = min((one.end_at for one in state.bookings.values()), default=None)
    if state.booking_ends_at != ends_at:
        yield f"the first booking ends at {state.booking_ends_at}, not {ends_at}"


def _is_used(state: State, booked: Booked) -> bool:
    owned = [job for job in state.jobs.values() if job.owner == booked.booking.owner and job.grant]
    return any(gpu in job.grant.units.gpus for job in owned if job.grant for gpu in booked.gpus)


def _gang(state: State, job: Job) -> Iterator[str]:
    gpus = job.grant.units.gpus if job.grant else ()
    wanted = {shape.gpus for shape in shapes_of(job.request)}
    if job.ladder is not None and job.request.min_gpus is not None:
        granted = len(job.ladder.granted.gpus)
        wanted = {*range(min(job.request.min_gpus, granted), granted + 1)}
    if len(gpus) not in wanted:
        yield f"job {job.id} asked for {job.request.gpus} GPUs and has {gpus}"
    unknown = [gpu for gpu in gpus if gpu not in state.devices]
    if unknown:
        yield f"job {job.id} has unknown GPUs: {unknown}"
        return
    if len({state.devices[gpu].simulated for gpu in gpus}) > 1:
        yield f"job {job.id} has simulated and real GPUs: {gpus}"
    if len({state.devices[gpu].mig for gpu in gpus}) > 1:
        yield f"job {job.id} has slices of several profiles, or slices and GPUs: {gpus}"


def _rates(state: State) -> Iterator[str]:
    rates: dict[Uid, float] = {}
    for job in state.jobs.values():
        if job.grant is not None:
            weight = fairness.weight(state, job.grant.units)
            rates[job.owner] = rates.get(job.owner, 0.0) + weight
    for owner, usage in state.usage.items():
        if not isclose(usage.rate, rates.get(owner, 0.0), abs_tol=_NEARLY):
            yield f"owner {owner} holds {usage.rate} GPUs, not {rates.get(owner, 0.0)}"


def _counters(state: State) -> Iterator[str]:
    known = [*state.jobs.values(), *state.ended.values()]
    if any(job.number >= state.next_job for job in known):
        yield f"a job has a number of {state.next_job} or more"
    decisions = [decision for job in known for decision in (job.grant, job.stop) if decision]
    if any(decision.id >= state.next_decision for decision in decisions):
        yield f"a decision has an id of {state.next_decision} or more"
    if any(int(lease.removeprefix("L")) >= state.next_lease for lease in state.leases):
        yield f"a lease has a number of {state.next_lease} or more"
