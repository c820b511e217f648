"""Where the traces of the benchmarks are, and the clusters that they are replayed on.

Some are in the repository. Larger ones are looked for in the folder that `GPU_WORKBENCH_TRACES`
names, as `NAME.csv` or `NAME.csv.gz` with the columns of `workbench simulate`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.simulate.experiment import Placement, Settings, try_policy
from workbench.simulate.metrics import Report
from workbench.simulate.traces import read_trace
from workbench.simulate.workload import Cluster, Workload

FOLDER = "GPU_WORKBENCH_TRACES"
IN_THE_REPOSITORY = Path(__file__).parents[1] / "simulate" / "traces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A trace that published results exist for."""

    name: str
    cluster: Cluster


def _known(name: str, cluster: str) -> Known:
    return Known(name=name, cluster=Cluster.parse(cluster))


TARGETS = (
    _known("tiresias_60", "2x4"),
    _known("venus_vcvlY", "2x8"),
    _known("venus_vcvGl", "20x8"),
    _known("philly_103959", "3x8"),
    _known("philly_11cb48", "2x8"),
)
"""Those that the default policy is held to."""
LARGER = (_known("muri_trace3", "8x8"), _known("philly_6214e9", "25x8"))
"""Those that are only reported on, where they are given."""
USERS = "venus_2vc_users"
"""With users, of two virtual clusters, each with nodes of its own."""


def path_of(name: str) -> Path | None:
    """Return where a trace is; None where it is not given."""
    folders = [IN_THE_REPOSITORY]
    if os.environ.get(FOLDER):
        folders.insert(0, Path(os.environ[FOLDER]))
    for folder in folders:
        for ending in (".csv", ".csv.gz"):
            if (folder / f"{name}{ending}").is_file():
                return folder / f"{name}{ending}"
    return None


def workload_of(name: str) -> Workload | None:
    """Return a trace's jobs; None, and a line that says so, where it is not given."""
    path = path_of(name)
    if path is None:
        print(f"NOT RUN: {name} is not in the repository; name its folder in {FOLDER}", flush=True)
        return None
    return read_trace(path).workload


def given(known: Sequence[Known]) -> Iterator[tuple[Known, Workload]]:
    """Yield the traces that are given, and name the others."""
    for one in known:
        workload = workload_of(one.name)
        if workload is not None:
            yield one, workload


class Replays:
    """Replays of one workload on one cluster, each done once; a pool of GPUs, no fair share."""

    def __init__(self, workload: Workload, cluster: Cluster) -> None:
        self.workload = workload
        self.cluster = cluster
        self._done: dict[tuple[str, Settings], Report] = {}

    def report(
        self, policy: str, *, restart_cost_s: float = 60.0, placement: Placement = "pool"
    ) -> Report:
        """Return what came of a policy."""
        settings = Settings(placement=placement, fair_share=False, restart_cost_s=restart_cost_s)
        key = policy, settings
        if key not in self._done:
            self._done[key] = try_policy(self.workload, self.cluster, policy, settings).report
        return self._done[key]
