"""A replay as the journal of a lab: what its controller would have written."""

from __future__ import annotations

from pathlib import Path

from workbench.core.decisions import Decision
from workbench.core.events import Event
from workbench.journal.journal import Journal
from workbench.simulate.errors import BadTrace
from workbench.simulate.experiment import DEFAULT, Settings, policy_named
from workbench.simulate.run import simulate
from workbench.simulate.workload import Cluster, Workload


def record_journal(
    path: Path,
    workload: Workload,
    cluster: Cluster,
    name: str = DEFAULT,
    settings: Settings | None = None,
) -> None:
    """Replay a workload into a new journal, whose devices say that they are simulated.

    Args:
        path: Of the journal; there is nothing there yet.
        workload: No job wants more GPUs than `cluster` has.
        cluster: What it runs on.
        name: Of the policy that the lab has.
        settings: How it is replayed.

    Raises:
        BadTrace: There is a file at `path`: what did not happen never goes into what did.
        UnknownPolicy: There is no policy of this name.
        JournalError: The journal cannot be written.
    """
    policy = policy_named(name)
    settings = settings or Settings()
    if path.exists():
        raise BadTrace(
            f"{path} is there already, and a replay is written into a new journal only",
            next_step="Give the path of a file that does not exist",
        )
    entries: list[Event | Decision] = []
    simulate(
        workload,
        cluster,
        policy=policy,
        placement=settings.placement,
        fair_share=settings.fair_share,
        restart_cost_s=settings.restart_cost_s,
        listener=entries.append,
    )
    with Journal.open(path) as journal:
        journal.append(entries)
