"""What users and groups may hold and spend: quotas, the budget of class `high`, caps of arrays.

A job that would exceed one waits, and those behind it go on. Nothing is stopped for a quota.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from workbench.core.job import Job
from workbench.core.model import Array, PriorityClass, Seconds, Shape, Uid, Units
from workbench.core.settings import Quota, Settings
from workbench.core.spelling import count
from workbench.core.state import State, Tally

DAY_S: Final = 24 * 3600.0
WEEK_DAYS: Final = 7
_NOTHING: Final = Tally()


class Account(NamedTuple):
    """Whose limits a job counts against; jobs of one account are limited alike.

    Attributes:
        owner: Whose it is.
        group: The owner's, empty for none.
        array: Its array, None where it belongs to none.
        is_high: Whether it asks for the class that has a budget.
        has_lease: Whether it is suspended: what it holds is counted already, so that nothing limits
            it.
    """

    owner: Uid
    group: str
    array: Array | None
    is_high: bool
    has_lease: bool = False

    @classmethod
    def of(cls, job: Job) -> Account:
        """Finds a job's account.

        Args:
            job: A waiting job.
        """
        if job.grant is not None:
            return cls(job.owner, job.group, None, is_high=False, has_lease=True)
        request = job.request
        is_high = request.priority is PriorityClass.HIGH
        return cls(job.owner, job.group, request.array, is_high)


def charge(state: State, job: Job, at: Seconds, units: Units, *, is_over: bool) -> None:
    """Notes that a job takes units or gives them back.

    Args:
        state: Its tallies are changed.
        job: Whose lease begins or ends.
        at: When.
        units: The lease's.
        is_over: Whether it ends.
    """
    leases, gpus = (-1, -len(units.gpus)) if is_over else (1, len(units.gpus))
    _charge(state, job, at, leases, gpus)
    if job.request.array is not None:
        arrays = state.arrays.setdefault(job.owner, {})
        name = job.request.array.id
        arrays[name] = arrays.get(name, 0) + leases
        if not arrays[name]:
            del arrays[name]
            if not arrays:
                del state.arrays[job.owner]


def charge_gpus(state: State, job: Job, at: Seconds, gpus: int) -> None:
    """Notes that a lease goes on with more or fewer GPUs.

    Args:
        state: Its tallies are changed.
        job: Whose lease it is.
        at: When.
        gpus: How many are added; negative where some are given back.
    """
    _charge(state, job, at, 0, gpus)


def _charge(state: State, job: Job, at: Seconds, leases: int, gpus: int) -> None:
    state.users[job.owner] = _moved(state.users.get(job.owner), at, leases, gpus)
    if job.group:
        state.groups[job.group] = _moved(state.groups.get(job.group), at, leases, gpus)
    if job.request.priority is PriorityClass.HIGH and counts_as(job) is PriorityClass.HIGH:
        state.high[job.owner] = _moved(state.high.get(job.owner), at, leases, gpus)


def counts_as(job: Job) -> PriorityClass:
    """Says in which class a job with a lease runs: its own, or a lower one beyond its budget.

    Args:
        job: A job with a lease.
    """
    lowered = job.grant.counts_as if job.grant else None
    return job.request.priority if lowered is None else lowered


def week_s(tally: Tally, at: Seconds) -> float:
    """Reckons what was spent on this day of the lab's clock and the six before it.

    Args:
        tally: A user's or a group's.
        at: Now, not before `tally.at`.

    Returns:
        GPU-seconds.
    """
    first = int(at // DAY_S) - WEEK_DAYS + 1
    return sum(spent_s for day, spent_s in _days(tally, at) if day >= first)


def _moved(known: Tally | None, at: Seconds, leases: int, gpus: int) -> Tally:
    tally = _NOTHING if known is None else known
    days = _days(tally, at)
    if len(days) > WEEK_DAYS:
        first = int(at // DAY_S) - WEEK_DAYS + 1
        days = tuple(one for one in days if one[0] >= first)
    return Tally(tally.leases + leases, tally.gpus + gpus, at, days)


def _days(tally: Tally, at: Seconds) -> tuple[tuple[int, float], ...]:
    """Adds to the days of a tally what was held since."""
    if not tally.gpus or at <= tally.at:
        return tally.days
    days = dict(tally.days)
    since = max(tally.at, (at // DAY_S - WEEK_DAYS) * DAY_S)
    while since < at:
        day = int(since // DAY_S)
        until = min(at, (day + 1) * DAY_S)
        days[day] = days.get(day, 0.0) + tally.gpus * (until - since)
        since = until
    return tuple(days.items())


class Limits:
    """What may still start, in one round of decisions.

    Args:
        state: The state; it is not changed.
        settings: The lab's rules.
    """

    def __init__(self, state: State, settings: Settings) -> None:
        self.changes_at: Seconds | None = None
        """When time alone lets a job start that a limit holds back; None if none waits for that."""
        self._state = state
        self._settings = settings
        self._has_quotas = settings.has_quotas
        self._taken: dict[str | Uid | tuple[Uid, str], tuple[int, int]] = {}

    def allowed(self, account: Account, shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
        """Picks what a job may start with now as far as limits go.

        Args:
            account: Its account.
            shapes: What would do.

        Returns:
            Those of `shapes` that are within all limits; `shapes` itself where all are.
        """
        if not self._has_quotas and account.array is None:
            return shapes
        if account.has_lease:
            return shapes
        within = tuple(one for one in shapes if next(self.against(account, one), None) is None)
        return shapes if len(within) == len(shapes) else within

    def against(self, account: Account, shape: Shape) -> Iterator[str]:
        """Lists the limits that hold a job back.

        Args:
            account: Its account.
            shape: What it would get.

        Yields:
            A clause for people.
        """
        state, settings = self._state, self._settings
        if account.has_lease:
            return
        array = account.array
        if array is not None and array.at_once is not None:
            running = state.arrays.get(account.owner, {}).get(array.id, 0)
            running += self._taken.get((account.owner, array.id), (0, 0))[0]
            if running >= array.at_once:
                yield f"its array runs {count(array.at_once, 'job')} at one time"
        if self._has_quotas:
            quota = settings.quota_of(account.owner)
            tally = state.users.get(account.owner, _NOTHING)
            yield from self._beyond(quota, tally, account.owner, shape, "its owner")
            if account.group in settings.group_quotas:
                quota = settings.group_quotas[account.group]
                tally = state.groups.get(account.group, _NOTHING)
                yield from self._beyond(quota, tally, account.group, shape, "its group")

    def room_to_grow(self, job: Job, most: int) -> int:
        """Says by how many GPUs a lease may grow.

        Args:
            job: Whose it is.
            most: By how many it would.
        """
        state, settings = self._state, self._settings
        if not self._has_quotas:
            return most
        limits: list[tuple[Quota, Tally | None, Uid | str]] = [
            (settings.quota_of(job.owner), state.users.get(job.owner), job.owner)
        ]
        if job.group in settings.group_quotas:
            tally = state.groups.get(job.group)
            limits.append((settings.group_quotas[job.group], tally, job.group))
        for quota, known, key in limits:
            tally = known or _NOTHING
            if self._is_spent(quota, tally):
                return 0
            if quota.gpus is not None:
                taken = self._taken.get(key, (0, 0))[1]
                most = min(most, quota.gpus - tally.gpus - taken)
        return max(most, 0)

    def note_growth(self, job: Job, gpus: int) -> None:
        """Notes that a lease grows.

        Args:
            job: Whose it is.
            gpus: By how many.
        """
        keys: tuple[str | Uid, ...] = (job.owner, job.group) if self._has_quotas else ()
        for key in keys:
            leases, known = self._taken.get(key, (0, 0))
            self._taken[key] = leases, known + gpus

    def may_be_high(self, owner: Uid) -> bool:
        """Tells whether the budget of the class `high` lets one more job of an owner count as that.

        Args:
            owner: Who.
        """
        tally = self._state.high.get(owner, _NOTHING)
        taken = self._taken.get(f"high {owner}", (0, 0))[0]
        budget = self._settings.high
        is_within = budget.leases is None or tally.leases + taken < budget.leases
        return is_within and not self._is_spent(budget, tally)

    def take(self, account: Account, units: Units, *, is_high: bool) -> None:
        """Notes that a job starts.

        Args:
            account: Its account.
            units: What it gets.
            is_high: Whether it counts as of the class `high`.
        """
        if account.has_lease:
            return
        keys: list[str | Uid | tuple[Uid, str]] = [f"high {account.owner}"] if is_high else []
        if account.array is not None:
            keys.append((account.owner, account.array.id))
        if self._has_quotas:
            keys += [account.owner, account.group]
        for key in keys:
            leases, gpus = self._taken.get(key, (0, 0))
            self._taken[key] = leases + 1, gpus + len(units.gpus)

    def _beyond(
        self, quota: Quota, tally: Tally, key: str | Uid, shape: Shape, whose: str
    ) -> Iterator[str]:
        leases, gpus = self._taken.get(key, (0, 0))
        leases, gpus = leases + tally.leases, gpus + tally.gpus
        if quota.leases is not None and leases >= quota.leases:
            yield f"{whose} may run {count(quota.leases, 'job')} at one time"
        if shape.gpus and quota.gpus is not None and gpus + shape.gpus > quota.gpus:
            yield f"{whose} may hold {count(quota.gpus, 'GPU')} at one time and holds {gpus}"
        if shape.gpus and self._is_spent(quota, tally):
            yield f"{whose} has spent {quota.gpu_hours_a_week:g} GPU-hours in the last seven days"

    def _is_spent(self, quota: Quota, tally: Tally) -> bool:
        hours, at = quota.gpu_hours_a_week, self._state.at
        if hours is None or week_s(tally, at) < hours * 3600:
            return False
        self.changes_at = (at // DAY_S + 1) * DAY_S
        return True
