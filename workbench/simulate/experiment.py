"""One policy, or several, on one trace: what front-ends and benchmarks call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from workbench.core.decisions import Decision
from workbench.policies import DEFAULT_POLICY, POLICIES
from workbench.simulate.errors import UnknownPolicy
from workbench.simulate.metrics import Record, Report, report_on
from workbench.simulate.run import simulate
from workbench.simulate.workload import Cluster, Workload

Placement = Literal["pool", "nodes"]
RESTART_COST_S: Final = 60.0
DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a trace is replayed.

    Attributes:
        placement: `nodes`: a gang that fits on one node is never spread; `pool`: any GPU will do.
        fair_share: Whether users who had much of late stand back.
        restart_cost_s: What each preemption costs the job that gave way, in seconds on its GPUs.
    """

    placement: Placement = "nodes"
    fair_share: bool = True
    restart_cost_s: float = RESTART_COST_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one policy.

    Attributes:
        policy: Its name.
        records: One for each job.
        report: Their sum.
        notices: What was decided about jobs beyond starting them, in order.
    """

    policy: str
    records: tuple[Record, ...]
    report: Report
    notices: tuple[Decision, ...] = ()


def policy_named(name: str) -> str:
    """Return the policy's own name; `default` is the lab's default.

    Raises:
        UnknownPolicy: There is none of this name.
    """
    known = str(DEFAULT_POLICY) if name == DEFAULT else name
    if known not in POLICIES:
        raise UnknownPolicy(
            f"no policy is called {name[:40]!r}",
            next_step=f"Choose one of {', '.join(sorted({*POLICIES, DEFAULT}))}",
        )
    return known


def try_policy(
    workload: Workload, cluster: Cluster, name: str, settings: Settings | None = None
) -> Result:
    """Replay a workload under one policy.

    Args:
        workload: No job wants more GPUs than `cluster` has.
        cluster: What it runs on.
        name: Of the policy.
        settings: How it is replayed.

    Raises:
        UnknownPolicy: There is none of this name.
    """
    policy = policy_named(name)
    settings = settings or Settings()
    outcome = simulate(
        workload,
        cluster,
        policy=policy,
        placement=settings.placement,
        fair_share=settings.fair_share,
        restart_cost_s=settings.restart_cost_s,
    )
    report = report_on(outcome.records, cluster, events=outcome.events, wall_s=outcome.wall_s)
    return Result(policy=policy, records=outcome.records, report=report, notices=outcome.notices)


def compare(
    workload: Workload, cluster: Cluster, names: Sequence[str], settings: Settings | None = None
) -> list[Result]:
    """Replay a workload under several policies, in the order of their names' list.

    Raises:
        UnknownPolicy: There is none of one of these names; nothing was replayed.
    """
    for name in names:
        policy_named(name)
    return [try_policy(workload, cluster, name, settings) for name in names]
