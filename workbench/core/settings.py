"""What a lab decides about its queue; not in the journal, so it never rewrites history."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.core.model import Seconds

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
        fair_patience_s: After so much waiting a job may take units from an owner who used much
            more than its own did lately.
        fair_share: Whether owners who used less lately come first within a class.
        idle_grace_s: How long after a warning a running job whose use is still low is lowered by
            one class; so long no second one follows. None for no warnings.
        idle_back_s: After so much use a lowered job counts as its own class again.
    """

    bound_s: Seconds | None = 24 * _HOUR_S
    ageing_s: Seconds | None = 12 * _HOUR_S
    overdue_part: float = 0.25
    quantum_s: Seconds = 60.0
    fair_patience_s: Seconds = 3600.0
    fair_share: bool = True
    idle_grace_s: Seconds | None = 600.0
    idle_back_s: Seconds = 300.0
