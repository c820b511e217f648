from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulate.reference import fifo
from workbench.simulate.metrics import Record, Stint, jain, percentile, report_on
from workbench.simulate.traces import read_trace
from workbench.simulate.workload import Cluster, SimJob

TRACES = Path(__file__).parent / "traces"


def record(
    id_: str = "1",
    *,
    submit_s: float = 0.0,
    service_s: float = 100.0,
    gpus: int = 1,
    stints: tuple[tuple[float, float], ...] = ((0.0, 100.0),),
    user: str = "",
    lost_work_s: float = 0.0,
) -> Record:
    names = tuple(f"gpu{n}" for n in range(gpus))
    return Record(
        job=SimJob(id=id_, submit_s=submit_s, service_s=service_s, gpus=gpus, user=user),
        first_start_s=stints[0][0],
        end_s=stints[-1][1],
        stints=tuple(Stint(start_s=start, end_s=end, gpus=names) for start, end in stints),
        lost_work_s=lost_work_s,
        preemptions=len(stints) - 1,
    )


class Printed(NamedTuple):
    """What the Tiresias simulator printed for a trace."""

    trace: str
    cluster: str
    queue: str
    mean: float
    p50: float
    p95: float
    p99: float
    makespan: float
    wait: float


@pytest.mark.parametrize(
    "printed",
    [
        Printed("tiresias_60", "2x4", "strict", 1556.5, 1415.5, 3897.65, 3979.89, 5747, 1378.1),
        Printed("tiresias_60", "2x4", "greedy", 715.3, 150.5, 3388.05, 3419.28, 4806, 536.8),
        Printed("venus_vcvlY", "2x8", "strict", 9667.0, 198.0, 66775.0, 163816.64, 2340337, 360.4),
    ],
)
def test_figures_are_those_that_the_tiresias_simulator_prints(printed: Printed) -> None:
    where = Cluster.parse(printed.cluster)
    workload = read_trace(TRACES / f"{printed.trace}.csv").workload
    report = report_on(
        fifo(workload, where, greedy=printed.queue == "greedy"), where, events=1, wall_s=1.0
    )
    a_decimal = 0.0501
    assert report.completion.mean == pytest.approx(printed.mean, abs=a_decimal)
    assert report.completion.p50 == printed.p50
    assert report.completion.p95 == pytest.approx(printed.p95)
    assert report.completion.p99 == pytest.approx(printed.p99)
    assert report.makespan_s == printed.makespan
    assert report.wait.mean == pytest.approx(printed.wait, abs=a_decimal)


def test_wait_counts_restarts_and_work_done_twice_and_utilisation_counts_them_as_use() -> None:
    one = record(submit_s=10.0, gpus=2, stints=((20.0, 60.0), (80.0, 200.0)), lost_work_s=0.0)
    assert (one.completion_s, one.wait_s, one.gpu_s) == (190.0, 90.0, 320.0)
    report = report_on([one], Cluster.parse("1x4"), events=500, wall_s=0.25)
    assert report.makespan_s == 190.0
    assert report.utilisation == 320.0 / (4 * 190.0)
    assert (report.preemptions, report.events_per_s) == (1, 2000.0)


def test_a_short_job_counts_as_ten_seconds_and_no_slowdown_is_below_one() -> None:
    assert record(service_s=1.0, stints=((0.0, 1.0),)).bounded_slowdown == 1.0
    assert record(service_s=1.0, stints=((99.0, 100.0),)).bounded_slowdown == 10.0
    assert record(service_s=20.0, stints=((80.0, 100.0),)).bounded_slowdown == 5.0


@pytest.mark.parametrize(
    ("shares", "index"),
    [([0.5, 0.5, 0.5], 1.0), ([1.0, 0.0, 0.0, 0.0], 0.25), ([1.0, 0.5], 0.9), ([0.0, 0.0], 1.0)],
)
def test_jains_index_is_one_for_equals_and_one_nth_where_one_has_all(
    shares: list[float], index: float
) -> None:
    assert jain(shares) == pytest.approx(index)


def test_a_share_is_service_over_demand_in_gpu_seconds() -> None:
    records = [
        record("1", gpus=4, user="ann"),
        record("2", gpus=1, user="ann", stints=((100.0, 200.0),)),
        record("3", gpus=2, user="bob", stints=((300.0, 400.0),)),
        record("4", gpus=8, stints=((900.0, 1000.0),)),
    ]
    report = report_on(records, Cluster.parse("1x8"), events=0, wall_s=0.0)
    assert [(user.user, user.jobs) for user in report.users] == [("ann", 2), ("bob", 1)]
    assert [user.share for user in report.users] == [500 / 600, 200 / 800]
    assert report.jain == pytest.approx(jain([500 / 600, 200 / 800]))


def test_what_cannot_be_known_is_none() -> None:
    still = record(service_s=0.0, stints=((0.0, 0.0),), user="ann")
    report = report_on([still], Cluster.parse("1x1"), events=3, wall_s=0.0)
    assert (report.utilisation, report.events_per_s, report.jain) == (None, None, 1.0)
    assert report_on([record()], Cluster.parse("1x1"), events=3, wall_s=1.0).jain is None


def test_the_row_for_programs_has_the_names_that_are_promised() -> None:
    row = report_on([record(user="ann")], Cluster.parse("1x1"), events=4, wall_s=2.0).as_row()
    promised = (
        "mean_completion_s p50_s p95_s p99_s mean_wait_s longest_wait_s makespan_s utilisation "
        "preemptions lost_work_s jain events_per_s jobs"
    )
    assert {name: row[name] for name in promised.split()} == {
        "mean_completion_s": 100.0,
        "p50_s": 100.0,
        "p95_s": 100.0,
        "p99_s": 100.0,
        "mean_wait_s": 0.0,
        "longest_wait_s": 0.0,
        "makespan_s": 100.0,
        "utilisation": 1.0,
        "preemptions": 0,
        "lost_work_s": 0.0,
        "jain": 1.0,
        "events_per_s": 2.0,
        "jobs": 1,
    }


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0, 100))
def test_a_percentile_lies_within_and_only_grows(values: list[float], share_pct: float) -> None:
    ordered = sorted(values)
    found = percentile(ordered, share_pct)
    assert ordered[0] <= found <= ordered[-1] * (1 + 1e-12)
    assert percentile(ordered, 0) == ordered[0]
    assert percentile(ordered, 100) == ordered[-1]
    assert found <= percentile(ordered, min(100, share_pct + 1)) * (1 + 1e-12)
