"""What a lab decides about its queue; not in the journal, so it never rewrites history."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.core.history import RESTART_S
from workbench.core.model import Preemption, Seconds

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A lab's rules.

    Attributes:
        bound_s: After so much waiting in all a job is overdue: it comes before all that are not.
            None for never. A policy with a bound of its own overrides it.
        overdue_part: The part of the lab that overdue jobs get in this way at one time. For a job
            that is larger units are kept as they come free, for one such job at a time.
        ageing_s: After so much waiting a job counts as one class higher; None for never.
        quantum_s: A job that runs is not preempted within so much of its start.
        restart_s: What a stopped job is reckoned to lose when it comes back. One that likely ends
            within so much more than its winner has waited is left to end; 0 to reckon nothing.
        steps: The steps of preemption that this lab can carry out.
        fair_patience_s: After so much waiting a job may take units from an owner who used much
            more than its own did lately.
        fair_share: Whether owners who used less lately come first within a class.
    """

    bound_s: Seconds | None = 24 * _HOUR_S
    ageing_s: Seconds | None = 12 * _HOUR_S
    overdue_part: float = 0.25
    quantum_s: Seconds = 60.0
    restart_s: Seconds = RESTART_S
    steps: tuple[Preemption, ...] = tuple(Preemption)
    fair_patience_s: Seconds = 3600.0
    fair_share: bool = True
