"""Fair share: what owners used lately, so that those who used little come first.

Use is decayed by a half-life: an hour of a GPU a half-life ago counts half. It is reckoned exactly
at any time from what an owner holds, without being told.
"""

from __future__ import annotations

from math import exp2, floor, log, log2
from typing import Final

from workbench.core.model import Seconds, Uid, Units
from workbench.core.state import State, Usage

_NOTHING: Final = 1e-9
"""Sums of weights come back to 0 only nearly."""
_FLOOR_S: Final = 3600.0
"""Below so many GPU-seconds owners count as alike."""


def weight(state: State, units: Units) -> float:
    """Weighs what a lease holds.

    Args:
        state: The state; it is not changed.
        units: The lease's.

    Returns:
        GPUs; for a lease without any its cores by `state.core_weight`.
    """
    return float(len(units.gpus)) if units.gpus else units.cores * state.core_weight


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
    return usage.weighted_s * left + usage.rate * half_life_s / log(2) * (1 - left)


def share(state: State, owner: Uid) -> int:
    """Ranks an owner by use, in doublings, so that small differences leave the order to the policy.

    Args:
        state: The state; it is not changed.
        owner: Who.

    Returns:
        0 for those who used next to nothing, and one more for each doubling.
    """
    usage = state.usage.get(owner)
    if usage is None:
        return 0
    return max(0, floor(log2(max(used_s(state, usage, state.at), 1.0) / _FLOOR_S)) + 1)
