"""Which GPUs a booking gets: when it begins, and what has to be left for it until then."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Final, NamedTuple

from workbench.core.calendar import Booked, Booking, spans
from workbench.core.job import Job, stopping_step
from workbench.core.model import DeviceId, DeviceStatus, JobState, LeaseId, Seconds, Shape, Uid
from workbench.core.placement import Pool, gpus_in_service
from workbench.core.state import Device, State, expected_end

_FREE, _LEAVING, _LIKELY, _YIELDS, _STAYS, _OUT = range(6)
"""What it takes that a booking gets a GPU; the least first. Up to `_LIKELY` nobody is disturbed."""
_NEVER: Final = float("inf")


class Demand(NamedTuple):
    """What a booking needs at one time.

    Attributes:
        owner: Whose jobs may hold its GPUs.
        size: How many GPUs.
        suits: Whether a GPU would do.
    """

    owner: Uid
    size: int
    suits: Callable[[Device], bool]


def suits(booking: Booking, gpu: Device) -> bool:
    """Tells whether a GPU is what a booking asks for.

    Args:
        booking: Any booking.
        gpu: Any GPU.
    """
    if booking.devices:
        return gpu.id in booking.devices
    return (
        not gpu.mig
        and (booking.node is None or gpu.node == booking.node)
        and (booking.model is None or booking.model.lower() in gpu.model.lower())
    )


def is_particular(booking: Booking) -> bool:
    """Tells whether not every GPU would do.

    Args:
        booking: Any booking.
    """
    return bool(booking.devices) or booking.node is not None or booking.model is not None


def seat(
    demands: Sequence[Demand], gpus: Sequence[Device], is_left: Callable[[Device, Uid], bool]
) -> dict[DeviceId, int]:
    """Gives as many GPUs to bookings as can be given at all, none of them twice.

    Args:
        demands: What is needed; each prefers the earlier GPUs.
        gpus: All there are.
        is_left: Whether a GPU is free, or held by a job of this owner.

    Returns:
        The index of the demand of each GPU that is given.

    Source: H. W. Kuhn, "The Hungarian Method for the Assignment Problem" (1955), in its form for
    bipartite matching by augmenting paths.
    """
    given: dict[DeviceId, int] = {}

    def fill(number: int, tried: dict[int, None]) -> bool:
        demand = demands[number]
        others = []
        for gpu in gpus:
            if demand.suits(gpu) and is_left(gpu, demand.owner):
                if gpu.id not in given:
                    given[gpu.id] = number
                    return True
                others.append(gpu.id)
        tried[number] = None
        for device in others:
            if given[device] not in tried and fill(given[device], tried):
                given[device] = number
                return True
        return False

    for number, demand in enumerate(demands):
        for _ in range(demand.size):
            if not fill(number, {}):
                break
    return given


def choose(state: State, booked: Booked, taken: Container[DeviceId]) -> tuple[DeviceId, ...]:
    """Chooses the GPUs of a booking that begins: of those that nobody has to leave, else the least.

    Args:
        state: The state; it is not changed.
        booked: A booking that is not open.
        taken: GPUs that other bookings have.

    Returns:
        As many as are booked, or all that suit; not those that a particular booking needs that
        begins meanwhile, if there are others; of one node where that stops nobody who gives way
        to nobody. Best fit; those that are out of service come last.
    """
    booking = booked.booking
    suitable = [
        gpu for gpu in _known(state, booking) if suits(booking, gpu) and gpu.id not in taken
    ]
    if booking.devices:
        return tuple(gpu.id for gpu in suitable)
    wanted = _wanted(state, booked)
    ranked = [gpu for gpu in suitable if gpu.id not in wanted]
    if len(ranked) < booking.size:
        ranked = suitable
    costs = {gpu.id: _cost(state, booked, gpu) for gpu in ranked}
    nodes = dict.fromkeys(gpu.node for gpu in ranked)
    choices = [_pick(state, booked, ranked, costs)]
    if len(nodes) > 1:
        alone = [[gpu for gpu in ranked if gpu.node == node] for node in nodes]
        choices += [_pick(state, booked, gpus, costs) for gpus in alone]
    best = min(choices, key=lambda choice: choice.rank)
    return tuple(gpu.id for gpu in best.gpus)


class _Choice(NamedTuple):
    rank: tuple[int, bool, bool, int, int]
    gpus: list[Device]


def _pick(
    state: State, booked: Booked, gpus: Sequence[Device], costs: dict[DeviceId, int]
) -> _Choice:
    """Picks of these GPUs those that take the least."""
    size = booked.booking.size
    picked: list[Device] = []
    for most in (_FREE, _LEAVING, _LIKELY):
        ready = [gpu for gpu in gpus if costs[gpu.id] <= most]
        if len(ready) >= size:
            units = Pool(ready, 0, 0).place(Shape(size, 0, 0, 0))
            ids = units.gpus if units else tuple(gpu.id for gpu in ready[:size])
            picked = [gpu for gpu in ready if gpu.id in ids]
            break
    else:
        held = _leases(state, booked, gpus, costs, size - len(ready))
        out = [gpu for gpu in gpus if costs[gpu.id] == _OUT]
        picked = [*ready, *(gpu for lease in held for gpu in lease), *out][:size]
    worst = max((costs[gpu.id] for gpu in picked), default=_FREE)
    stopped = len({tuple(state.leases_on(gpu.id)) for gpu in picked if costs[gpu.id] > _LIKELY})
    is_spread = len({gpu.node for gpu in picked}) > 1
    return _Choice((size - len(picked), worst >= _STAYS, is_spread, worst, stopped), picked)


def _leases(
    state: State,
    booked: Booked,
    gpus: Sequence[Device],
    costs: dict[DeviceId, int],
    missing: int,
) -> list[list[Device]]:
    """Picks leases that have to go, none for nothing: warned ones first, then small ones."""
    warned = {overstay.lease for overstay in booked.overstays}
    held: dict[LeaseId, list[Device]] = {}
    for gpu in gpus:
        if costs[gpu.id] in {_YIELDS, _STAYS}:
            held.setdefault(state.leases_on(gpu.id)[0], []).append(gpu)

    def rank(lease: LeaseId) -> tuple[int, bool, int, float]:
        job = state.jobs[state.leases[lease]]
        cost, width = costs[held[lease][0].id], job.request.gpus
        return cost, lease not in warned, width, -(job.started_at or state.at)

    chosen: list[list[Device]] = []
    for lease in sorted(held, key=rank):
        if sum(map(len, chosen)) >= missing:
            break
        chosen.append(held[lease])
    for one in reversed(list(chosen)):
        if sum(map(len, chosen)) - len(one) >= missing:
            chosen.remove(one)
    return chosen


def _known(state: State, booking: Booking) -> list[Device]:
    if booking.devices:
        return [state.devices[one] for one in booking.devices if one in state.devices]
    return gpus_in_service(state)


def _wanted(state: State, booked: Booked) -> set[DeviceId]:
    """GPUs that a particular booking needs that begins while this one is on."""
    others = [
        one.booking
        for one in state.bookings.values()
        if one is not booked and is_particular(one.booking) and not one.is_open
    ]
    overlapping = []
    for other in others:
        span = next(spans(other, booked.start_at), None)
        if span is not None and span.start_at < booked.end_at:
            overlapping.append(other)
    return {gpu.id for other in overlapping for gpu in _known(state, other) if suits(other, gpu)}


def _cost(state: State, booked: Booked, gpu: Device) -> int:
    if gpu.status is not DeviceStatus.AVAILABLE:
        return _OUT
    jobs = [state.jobs[state.leases[lease]] for lease in state.leases_on(gpu.id)]
    return max((_cost_of(state, booked, job) for job in jobs), default=_FREE)


def _cost_of(state: State, booked: Booked, job: Job) -> int:
    if job.owner == booked.booking.owner:
        return _FREE
    if is_gone(state, job, booked.start_at):
        return _LEAVING
    end = expected_end(state, job)
    if end is not None and state.at < end <= booked.start_at:
        return _LIKELY
    return _STAYS if stopping_step(job.request) is None else _YIELDS


def is_gone(state: State, job: Job, at: Seconds) -> bool:
    """Tells whether a job that holds a lease is sure to be over by then.

    Args:
        state: The state; it is not changed.
        job: The job.
        at: When.

    Returns:
        Whether it is on its way out, or stopped before by its time limit.
    """
    if job.state in {JobState.STOPPING, JobState.PREEMPTING}:
        return True
    limit_s = job.request.time_limit_s
    if limit_s is None:
        return False
    started = state.at if job.started_at is None else job.started_at
    return state.at < started + limit_s - job.served_s <= at


def stays_until(state: State, job: Job) -> Seconds:
    """Says until when a job keeps its GPUs from bookings.

    Args:
        state: The state; it is not changed.
        job: A job that holds a lease, or gets one now.

    Returns:
        Now for one that gives way, when it is expected to end, or never (infinity).
    """
    is_going = job.state in {JobState.STOPPING, JobState.PREEMPTING}
    if is_going or stopping_step(job.request) is not None:
        return state.at
    end = expected_end(state, job)
    return _NEVER if end is None else end
