"""The default, for labs that know no run times: what is likely done soonest, with patience.

New work runs first until it has shown itself long; past the last level the order is first come,
first served. A running job gives way only to one that is clearly likelier to be done soon, and
only once that has waited for as long as stopping the running one costs: a few restarts, more the
wider its gang, and a part of what it has done, as far as it holds the lab up. (Waiting for the
price before paying it is the rule for renting or buying skis: it never costs more than twice the
best that could have been done, knowing the future.)
"""

from __future__ import annotations

from math import log2
from typing import Final

from workbench.core.history import RESTART_S
from workbench.core.job import Job, useful_s
from workbench.core.model import Seconds
from workbench.core.state import State
from workbench.policies.gittins import Gittins

_CLEARLY: Final = 1.0
"""In doublings."""
_RESTARTS: Final = 3.0
_WORK: Final = 0.3
"""The part of a running job's work that its stop puts at stake."""
_ALIKE_S: Final = 3600.0
"""A job that came earlier to the same standing waits for this long at least."""


class Patient(Gittins):
    """Gittins index with patience."""

    name = "patient"
    bound_s = 28800.0

    def patience_s(
        self, state: State, running: Job, waiting: Job, gap: float, score: float, /
    ) -> Seconds | None:
        """Says how long a job waits until a running one gives way to it."""
        if gap < 0:
            return None
        is_clear = gap >= _CLEARLY and gap >= _CLEARLY + log2(1 + RESTART_S / 2.0**score)
        if not is_clear and (running.entered_at, running.number) < (
            waiting.entered_at,
            waiting.number,
        ):
            return None
        width, own_width = running.request.gpus or 1, waiting.request.gpus or 1
        patience_s = _RESTARTS * RESTART_S * (width / own_width if width > own_width else 1.0)
        part = width / (len(state.devices) or 1)
        patience_s += _WORK * useful_s(running, state.at) * part / (state.waiting_jobs or 1)
        return patience_s if is_clear else max(patience_s, _ALIKE_S)
