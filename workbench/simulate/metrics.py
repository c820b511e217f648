"""What became of each job, and what that says of a policy.

Source: completion, wait and makespan as in Feitelson and Rudolph, "Metrics and benchmarking for
parallel job scheduling" (JSSPP 1998), which also has the bounded slowdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Final, Self

from workbench.simulate.workload import Cluster, SimJob

SLOWDOWN_BOUND_S: Final = 10.0
"""Shorter jobs count as this long, so that none has a slowdown of thousands for a short wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stint:
    """A time in which a job held GPUs, start-up after a preemption included.

    Attributes:
        start_s: On the trace's clock.
        end_s: At least `start_s`.
        gpus: Their names: as many as the job asked for, or what it was left of them.
    """

    start_s: float
    end_s: float
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What became of a job.

    Attributes:
        job: As the trace has it.
        first_start_s: When it first held its GPUs.
        end_s: When it was done.
        stints: In order; at least one.
        lost_work_s: Work that was thrown away and done again, in seconds of the job's run time.
        preemptions: How often it was made to give its GPUs up.
        shrinks: How often it was made to go on with fewer of them.
        suspensions: How often it was made to stand still.
    """

    job: SimJob
    first_start_s: float
    end_s: float
    stints: tuple[Stint, ...]
    lost_work_s: float = 0.0
    preemptions: int = 0
    shrinks: int = 0
    suspensions: int = 0

    @property
    def completion_s(self) -> float:
        """From submission to end."""
        return self.end_s - self.job.submit_s

    @property
    def wait_s(self) -> float:
        """What is not service at full speed: queueing, restarts, lost work, want of GPUs."""
        return self.completion_s - self.job.service_s

    @property
    def bounded_slowdown(self) -> float:
        """Completion over service, which counts as `SLOWDOWN_BOUND_S` at least; never below 1."""
        return max(1.0, self.completion_s / max(self.job.service_s, SLOWDOWN_BOUND_S))

    @property
    def gpu_s(self) -> float:
        """GPU-seconds that it held."""
        return sum((stint.end_s - stint.start_s) * len(stint.gpus) for stint in self.stints)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A quantity over all jobs. Percentiles interpolate linearly, as `percentile` says."""

    mean: float
    p50: float
    p95: float
    p99: float
    longest: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """Return the spread of at least one value."""
        ordered = sorted(values)
        return cls(
            mean=sum(ordered) / len(ordered),
            p50=percentile(ordered, 50),
            p95=percentile(ordered, 95),
            p99=percentile(ordered, 99),
            longest=ordered[-1],
        )


def percentile(ordered: Sequence[float], share_pct: float) -> float:
    """Return a percentile, interpolated linearly between the two values beside it.

    Args:
        ordered: At least one value, sorted.
        share_pct: From 0, the smallest, to 100, the largest.

    Source: type 7 of Hyndman and Fan, "Sample quantiles in statistical packages" (1996), which is
    the default of numpy and R.
    """
    position = (len(ordered) - 1) * share_pct / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserReport:
    """One user's part.

    Attributes:
        user: As the trace names the user.
        jobs: How many; at least 1.
        gpu_s: GPU-seconds held.
        mean_completion_s: Over the user's jobs.
        mean_wait_s: Over the user's jobs.
        mean_bounded_slowdown: Over the user's jobs.
        share: GPU-seconds of service that the user obtained, over those demanded: `jain` says how.
    """

    user: str
    jobs: int
    gpu_s: float
    mean_completion_s: float
    mean_wait_s: float
    mean_bounded_slowdown: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a policy made of a workload.

    Attributes:
        jobs: How many were done.
        completion: Seconds from submission to end.
        wait: Seconds of it that were no service, restarts included.
        bounded_slowdown: See `Record`.
        makespan_s: From the first submission to the last end.
        utilisation: GPU-seconds held, restarts included, over those that the cluster had in the
            makespan; None where it had none.
        preemptions: In all.
        shrinks: In all.
        suspensions: In all.
        lost_work_s: In all, as `Record` counts it.
        jain: Fairness over users, see `jain`; None where the trace names no user.
        users: By name; those that the trace names.
        events_per_s: How many events the core took a second of real time; None if too few to tell.
    """

    jobs: int
    completion: Spread
    wait: Spread
    bounded_slowdown: Spread
    makespan_s: float
    utilisation: float | None
    preemptions: int
    shrinks: int
    suspensions: int
    lost_work_s: float
    jain: float | None
    users: tuple[UserReport, ...]
    events_per_s: float | None

    def as_row(self) -> dict[str, object]:
        """Return everything as plain data: one flat object, units in the names."""
        completion, wait, slowdown = self.completion, self.wait, self.bounded_slowdown
        return {
            "jobs": self.jobs,
            "mean_completion_s": completion.mean,
            "p50_s": completion.p50,
            "p95_s": completion.p95,
            "p99_s": completion.p99,
            "longest_completion_s": completion.longest,
            "mean_wait_s": wait.mean,
            "p50_wait_s": wait.p50,
            "p95_wait_s": wait.p95,
            "p99_wait_s": wait.p99,
            "longest_wait_s": wait.longest,
            "mean_bounded_slowdown": slowdown.mean,
            "p50_bounded_slowdown": slowdown.p50,
            "p95_bounded_slowdown": slowdown.p95,
            "p99_bounded_slowdown": slowdown.p99,
            "largest_bounded_slowdown": slowdown.longest,
            "makespan_s": self.makespan_s,
            "utilisation": self.utilisation,
            "preemptions": self.preemptions,
            "shrinks": self.shrinks,
            "suspensions": self.suspensions,
            "lost_work_s": self.lost_work_s,
            "jain": self.jain,
            "users": [asdict(user) for user in self.users],
            "events_per_s": self.events_per_s,
        }


def report_on(records: Sequence[Record], cluster: Cluster, *, events: int, wall_s: float) -> Report:
    """Sum up a simulation.

    Args:
        records: One for each job that was done; at least one.
        cluster: Where they ran.
        events: How many the core took.
        wall_s: Real seconds that it took for them.

    Returns:
        The report.
    """
    makespan_s = max(r.end_s for r in records) - min(r.job.submit_s for r in records)
    capacity_gpu_s = cluster.gpus * makespan_s
    users = _by_user(records)
    return Report(
        jobs=len(records),
        completion=Spread.of(r.completion_s for r in records),
        wait=Spread.of(r.wait_s for r in records),
        bounded_slowdown=Spread.of(r.bounded_slowdown for r in records),
        makespan_s=makespan_s,
        utilisation=sum(r.gpu_s for r in records) / capacity_gpu_s if capacity_gpu_s else None,
        preemptions=sum(r.preemptions for r in records),
        shrinks=sum(r.shrinks for r in records),
        suspensions=sum(r.suspensions for r in records),
        lost_work_s=sum(r.lost_work_s for r in records),
        jain=jain([user.share for user in users]) if users else None,
        users=users,
        events_per_s=events / wall_s if wall_s > 0 else None,
    )


def jain(shares: Sequence[float]) -> float:
    """Return how equally users are treated: 1 when all alike, 1/n when one of n gets everything.

    What a user's share is: while a job is in the system it demands its GPUs, so its user demands
    GPUs times completion time, and of that obtains GPUs times service. The share is what all jobs
    of the user obtained over what they demanded: 1 for one who never waited. It does not reward
    whoever cuts work into many small jobs, as a mean over jobs would.

    Args:
        shares: One for each user, from 0 to 1; at least one.

    Returns:
        (Σx)² / (n Σx²).

    Source: Jain, Chiu and Hawe, "A quantitative measure of fairness and discrimination for resource
    allocation in shared computer systems" (DEC-TR-301, 1984): the index, and allocation over demand
    as what it is taken of where demands differ.
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


def _by_user(records: Sequence[Record]) -> tuple[UserReport, ...]:
    named = sorted((r for r in records if r.job.user), key=lambda r: r.job.user)
    return tuple(
        _user_report(user, list(group)) for user, group in groupby(named, lambda r: r.job.user)
    )


def _user_report(user: str, records: list[Record]) -> UserReport:
    obtained_gpu_s = sum(r.job.gpus * r.job.service_s for r in records)
    demanded_gpu_s = sum(r.job.gpus * r.completion_s for r in records)
    return UserReport(
        user=user,
        jobs=len(records),
        gpu_s=sum(r.gpu_s for r in records),
        mean_completion_s=sum(r.completion_s for r in records) / len(records),
        mean_wait_s=sum(r.wait_s for r in records) / len(records),
        mean_bounded_slowdown=sum(r.bounded_slowdown for r in records) / len(records),
        share=obtained_gpu_s / demanded_gpu_s if demanded_gpu_s else 1.0,
    )
