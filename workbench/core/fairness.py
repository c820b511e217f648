"""Fair share: what owners used lately, so that those who used little come first.

Use is decayed by a half-life: an hour of a GPU a half-life ago counts half. It is reckoned exactly
at any time from what an owner holds, without being told.
"""

from __future__ import annotations

from math import exp2, log
from typing import Final

from workbench.core.model import Seconds, Uid, Units
from workbench.core.state import State, Usage

HALF_LIFE_S: Final = 7 * 24 * 3600.0
"""How long it takes until use counts half."""
CORE_WEIGHT: Final = 1 / 16
"""So many GPUs is a core of a lease that holds no GPU."""
_NOTHING: Final = 1e-9
"""Sums of weights come back to 0 only nearly."""
_LOG_2: Final = log(2)
_FLOOR_S: Final = 3600.0
"""Below so many GPU-seconds owners count as alike."""


def weight(units: Units) -> float:
    """Weighs what a lease holds.

    Args:
        units: Its units.

    Returns:
        GPUs; for a lease without any its cores by `CORE_WEIGHT`.
    """
    return float(len(units.gpus)) if units.gpus else units.cores * CORE_WEIGHT


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
    state.usage[owner] = Usage(used_s(known, at), at, rate if abs(rate) > _NOTHING else 0.0)


def used_s(usage: Usage, at: Seconds) -> float:
    """Reckons decayed use.

    Args:
        usage: What is known.
        at: Now, not before `usage.at`.

    Returns:
        Decayed GPU-seconds.
    """
    left = exp2((usage.at - at) / HALF_LIFE_S)
    return usage.weighted_s * left + usage.rate * HALF_LIFE_S / _LOG_2 * (1 - left)


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
    return int(used_s(usage, state.at) / _FLOOR_S).bit_length()


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
