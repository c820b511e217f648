"""The simulator reproduces what others' simulators printed; `anchors` says whose."""

from __future__ import annotations

from functools import cache

import pytest

from tests.benchmarks.anchors import ANCHORS, Anchor
from tests.benchmarks.traces import TARGETS, Replays, path_of
from workbench.simulate.traces import read_trace

SLOW = "philly_11cb48"
"""`make bench-policy` looks at it."""


@cache
def replays_of(trace: str) -> Replays:
    path = path_of(trace)
    assert path is not None
    (cluster,) = (one.cluster for one in TARGETS if one.name == trace)
    return Replays(read_trace(path).workload, cluster)


@pytest.mark.parametrize("anchor", [one for one in ANCHORS if one.trace != SLOW], ids=str)
def test_a_published_figure_is_reproduced(anchor: Anchor) -> None:
    ours_s = anchor.ours_s(replays_of(anchor.trace))
    assert ours_s == pytest.approx(anchor.value_s, rel=0, abs=anchor.tolerance_s)
