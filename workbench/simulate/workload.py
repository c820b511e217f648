"""What is simulated: jobs with known run times, and the cluster that they run on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Self

from workbench.core.model import PriorityClass
from workbench.simulate.errors import BadCluster, BadTrace

_CLUSTER: Final = re.compile(r"(\d{1,6})x(\d{1,4})", re.ASCII | re.IGNORECASE)
_MOST_GPUS: Final = 100_000
"""More than the largest cluster that published traces come from, and few enough to list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimJob:
    """A job of a trace.

    Attributes:
        id: Unique in its workload.
        submit_s: When it is submitted, on the trace's clock.
        service_s: How long it runs when nothing disturbs it; at least 0. No policy is told.
        gpus: Whole GPUs, all at once; at least 1.
        user: Whose it is; empty where the trace does not say.
        group: The user's group; empty where the trace does not say.
        status: How it ended in the trace, in the trace's words; empty where it does not say.
        min_gpus: It may go on with so many of its GPUs, at that part of its speed; None for all.
        priority: Its class.
        idle_from_s: After so much service it leaves its GPUs idle; None for never.
        idle_for_s: For so much service.
        reports_progress: Whether it says how far it is.
    """

    id: str
    submit_s: float
    service_s: float
    gpus: int
    user: str = ""
    group: str = ""
    status: str = ""
    priority: PriorityClass = PriorityClass.NORMAL
    idle_from_s: float | None = None
    idle_for_s: float = 0.0
    reports_progress: bool = False
    min_gpus: int | None = None


def order_of(job: SimJob) -> tuple[float, bool, int, str, str]:
    """Return the key by which jobs are submitted: time, then id, where numbers count as numbers."""
    if job.id.isdecimal() and job.id.isascii():
        digits = job.id.lstrip("0")
        return job.submit_s, False, len(digits), digits, job.id
    return job.submit_s, True, 0, job.id, job.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The jobs of a trace. Make it with `Workload.of`.

    Attributes:
        name: Of the trace, for people.
        jobs: Sorted by `order_of`; at least one, ids unique.
    """

    name: str
    jobs: tuple[SimJob, ...]

    @classmethod
    def of(cls, name: str, jobs: Iterable[SimJob]) -> Self:
        """Sort jobs into a workload.

        Args:
            name: Of the trace, for people.
            jobs: In any order.

        Raises:
            BadTrace: There is none, or two have the same id.
        """
        ordered = tuple(sorted(jobs, key=order_of))
        if not ordered:
            raise BadTrace(
                f"{name} has no job that can be simulated",
                next_step="A job needs a submit time, a run time and at least one GPU",
            )
        seen: set[str] = set()
        for job in ordered:
            if job.id in seen:
                raise BadTrace(
                    f"{name} has two jobs with the id {job.id!r}",
                    next_step="Give each job an id of its own",
                )
            seen.add(job.id)
        return cls(name=name, jobs=ordered)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Jobs of a trace that are not simulated.

    Attributes:
        reason: Why, as the end of "so many jobs …".
        jobs: How many; at least 1.
    """

    reason: str
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Equal nodes with equal GPUs.

    Attributes:
        nodes: At least 1.
        gpus_per_node: At least 1.
    """

    nodes: int
    gpus_per_node: int

    @property
    def gpus(self) -> int:
        """How many GPUs it has in all."""
        return self.nodes * self.gpus_per_node

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the cluster that `text` spells, such as `20x8`: 20 nodes with 8 GPUs each.

        Raises:
            BadCluster: It is spelled otherwise, empty, or larger than any cluster.
        """
        match = _CLUSTER.fullmatch(text.strip())
        nodes, gpus_per_node = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= nodes * gpus_per_node <= _MOST_GPUS:
            raise BadCluster(
                f"--cluster {text[:40]!r} is not a number of nodes, an x and a number of GPUs on "
                f"each, both at least 1 and at most {_MOST_GPUS:,} GPUs in all",
                next_step="Write for example --cluster 20x8",
            )
        return cls(nodes=nodes, gpus_per_node=gpus_per_node)

    def __str__(self) -> str:
        return f"{self.nodes}x{self.gpus_per_node}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A workload as it was read.

    Attributes:
        workload: What is simulated.
        left_out: What is not, and why.
        cluster: The GPUs that it was recorded on; None where the trace does not say.
    """

    workload: Workload
    left_out: tuple[LeftOut, ...] = ()
    cluster: Cluster | None = None

    def fitting(self, cluster: Cluster) -> Trace:
        """Return the trace without the jobs that want more GPUs than `cluster` has.

        Raises:
            BadTrace: No job is left.
        """
        reason = f"asking for more than the cluster's {cluster.gpus} GPUs"
        return self._keeping(lambda job: job.gpus <= cluster.gpus, reason)

    def latest(self, span_s: float) -> Trace:
        """Return the trace's last part: the jobs submitted within `span_s` of its last one."""
        first_s = self.workload.jobs[-1].submit_s - span_s
        return self._keeping(lambda job: job.submit_s >= first_s, "submitted before that time")

    def _keeping(self, is_kept: Callable[[SimJob], bool], reason: str) -> Trace:
        jobs = self.workload.jobs
        kept = [job for job in jobs if is_kept(job)]
        if len(kept) == len(jobs):
            return self
        left_out = LeftOut(reason=reason, jobs=len(jobs) - len(kept))
        return replace(
            self,
            workload=Workload.of(self.workload.name, kept),
            left_out=(*self.left_out, left_out),
        )
