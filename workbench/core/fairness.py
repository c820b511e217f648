"""Fair share: what owners used lately, so that those who used much stand back.

How soon a job is likely done and what its owner used are both counted in doublings, and added up:
whoever used twice as much does not come after everybody else, whatever that costs, but counts as
having jobs that take twice as long.

Use is decayed by a half-life: an hour of a GPU a half-life ago counts half. It is reckoned exactly
at any time from what an owner holds, without being told.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import exp2, log
from typing import Final

from workbench.core.model import DeviceId, LeaseId, Seconds, Uid, Units
from workbench.core.state import Device, State, Usage

_NOTHING: Final = 1e-9
"""Sums of weights come back to 0 only nearly."""
_LOG_2: Final = log(2)
_FLOOR_S: Final = 3600.0
"""Below so many GPU-seconds owners count as alike."""


def weight(state: State, units: Units) -> float:
    """Weighs what a lease holds.

    Args:
        state: The state; it is not changed.
        units: The lease's.

    Returns:
        GPUs, a share or slice by its part of the GPU's memory; for a lease without any its cores
        by `state.core_weight`.
    """
    if not units.gpus:
        return units.cores * state.core_weight
    if units.share_bytes:
        return _part(units.share_bytes, state.devices[units.gpus[0]])
    total = 0.0
    for gpu in units.gpus:
        device = state.devices[gpu]
        if device.parent is None:
            total += 1.0
        else:
            total += _part(device.memory_bytes, state.devices.get(device.parent))
    return total


def _part(memory_bytes: int | None, gpu: Device | None) -> float:
    """Says which part of a GPU that is; what is unknown counts as all of it."""
    if memory_bytes is None or gpu is None or gpu.memory_bytes is None:
        return 1.0
    return min(memory_bytes / gpu.memory_bytes, 1.0)


@contextmanager
def weighed_again(state: State, device: DeviceId, at: Seconds) -> Iterator[None]:
    """Notes what leases weigh from now on if what is known of a GPU changes in between.

    Args:
        state: Its `usage` is changed.
        device: The GPU or slice.
        at: When it changes.
    """
    leases: dict[LeaseId, None] = {}
    for part in (device, *state.slices.get(device, ())):
        if part in state.holders:
            leases[state.holders[part]] = None
        leases |= dict.fromkeys(sharer.lease for sharer in state.sharers.get(part, ()))
    jobs = [state.jobs[state.leases[lease]] for lease in leases]
    held = [(job.owner, job.grant.units) for job in jobs if job.grant]
    before = [weight(state, units) for _, units in held]
    yield
    for (owner, units), old in zip(held, before, strict=True):
        change = weight(state, units) - old
        if change:
            charge(state, owner, at, change)


def charge(state: State, owner: Uid, at: Seconds, change: float) -> None:
    """Notes that what an owner holds changes.

    Args:
        state: Its `usage` is changed.
        owner: Who.
        at: When; not before the last change.
        change: The weight that is added, or taken away where negative.
    """
    known = state.usage.get(owner, Usage(0.0, at, 0.0))
    rate = known.rate + change
    state.usage[owner] = Usage(used_s(state, known, at), at, rate if abs(rate) > _NOTHING else 0.0)


def reweigh(state: State, at: Seconds, half_life_s: Seconds, core_weight: float) -> None:
    """Changes how use is reckoned, from now on: what was used before stands as it was reckoned.

    Args:
        state: Its `usage`, `half_life_s` and `core_weight` are changed.
        at: When.
        half_life_s: How long it takes until use counts half.
        core_weight: So many GPUs is a core of a lease that holds no GPU.
    """
    used = {owner: used_s(state, usage, at) for owner, usage in state.usage.items()}
    state.half_life_s, state.core_weight = half_life_s, core_weight
    rates = dict.fromkeys(used, 0.0)
    for job_id in state.leases.values():
        job = state.jobs[job_id]
        if job.grant is not None:
            rates[job.owner] += weight(state, job.grant.units)
    for owner, weighted_s in used.items():
        state.usage[owner] = Usage(weighted_s, at, rates[owner])


def used_s(state: State, usage: Usage, at: Seconds) -> float:
    """Reckons decayed use.

    Args:
        state: The state; it is not changed.
        usage: What is known.
        at: Now, not before `usage.at`.

    Returns:
        Decayed GPU-seconds.
    """
    half_life_s = state.half_life_s
    left = exp2((usage.at - at) / half_life_s)
    return usage.weighted_s * left + usage.rate * half_life_s / _LOG_2 * (1 - left)


def share(state: State, owner: Uid) -> int:
    """Ranks an owner by use, in doublings.

    Args:
        state: The state; it is not changed.
        owner: Who.

    Returns:
        0 for those who used next to nothing, and one more for each doubling.
    """
    usage = state.usage.get(owner)
    if usage is None:
        return 0
    return int(used_s(state, usage, state.at) / _FLOOR_S).bit_length()


def rank(score: float, share: int) -> float:
    """Ranks a job within its class.

    Args:
        score: The policy's.
        share: Its owner's.

    Returns:
        The smaller is considered first; the score itself where the share is 0.
    """
    return score + share


class Shares(dict[Uid, int]):
    """The shares of owners at one time; each is reckoned when it is first asked for.

    Args:
        state: The state; it is not changed.
    """

    def __init__(self, state: State) -> None:
        super().__init__()
        self._state = state

    def __missing__(self, owner: Uid) -> int:
        """Reckons an owner's share."""
        found = self[owner] = share(self._state, owner)
        return found
