"""What a lab decides about its queue; not in the journal, so it never rewrites history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.core.history import RESTART_S
from workbench.core.model import Preemption, Seconds, Uid

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a user or a group may hold and spend. None is no limit.

    Attributes:
        leases: Jobs with a lease at one time.
        gpus: GPUs at one time.
        gpu_hours_a_week: GPU-hours on the present day of the lab's clock and the six before it.
            Who has spent them starts nothing more on a GPU; what runs goes on.
    """

    leases: int | None = None
    gpus: int | None = None
    gpu_hours_a_week: float | None = None


_NO_QUOTA = Quota()


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
        idle_grace_s: How long after a warning a running job whose use is still low is lowered by
            one class; so long no second one follows. None for no warnings.
        idle_back_s: After so much use a lowered job counts as its own class again.
        half_life_s: How long it takes until use counts half, for fair share.
        core_weight: So many GPUs is a core of a lease that holds no GPU, for fair share. Drivers
            tell the core both by `FairShareSet`: what was reckoned is kept.
        high: What of class `high` each user may hold and spend; beyond it a job counts as normal.
        quota: Of each user who has no other.
        user_quotas: Of these users.
        group_quotas: Of these groups; a job counts against its owner's quota and its group's.
        booking_max_s: The longest that a booking may be.
        booking_shadow_s: A job of unknown length that gives way to nobody gets no GPU that a
            booking needs from so long before it on. Longer leaves GPUs to jobs that say how long
            they run; shorter has more jobs stopped when a booking begins.
        booking_warn_s: Jobs that hold GPUs that a booking needs are warned so long before it, and
            nobody is stopped for it within so much of the warning.
        booking_stops: Whether such a job that gives way to nobody is stopped, or only warned.
        booking_grace_s: It is stopped so much later than it could be.
        booking_unused_s: A booking that no job of its owner used for so long is released, and its
            owner warned after half of that; None for never.
    """

    bound_s: Seconds | None = 24 * _HOUR_S
    ageing_s: Seconds | None = 12 * _HOUR_S
    overdue_part: float = 0.25
    quantum_s: Seconds = 60.0
    restart_s: Seconds = RESTART_S
    steps: tuple[Preemption, ...] = tuple(Preemption)
    fair_patience_s: Seconds = 3600.0
    fair_share: bool = True
    booking_max_s: Seconds = 7 * 24 * _HOUR_S
    booking_shadow_s: Seconds = 4 * _HOUR_S
    booking_warn_s: Seconds = 900.0
    booking_stops: bool = True
    booking_grace_s: Seconds = 0.0
    booking_unused_s: Seconds | None = 1800.0
    idle_grace_s: Seconds | None = 600.0
    idle_back_s: Seconds = 300.0
    half_life_s: Seconds = 7 * 24 * _HOUR_S
    core_weight: float = 1 / 16
    high: Quota = Quota(leases=1)
    quota: Quota = _NO_QUOTA
    user_quotas: Mapping[Uid, Quota] = field(default_factory=dict)
    group_quotas: Mapping[str, Quota] = field(default_factory=dict)

    @property
    def has_quotas(self) -> bool:
        """Whether anybody has one."""
        return self.quota != _NO_QUOTA or bool(self.user_quotas) or bool(self.group_quotas)

    def quota_of(self, owner: Uid) -> Quota:
        """Finds a user's quota.

        Args:
            owner: Who.
        """
        return self.user_quotas.get(owner, self.quota)
