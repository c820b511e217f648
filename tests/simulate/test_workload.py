from __future__ import annotations

import pytest

from workbench.simulate.errors import BadCluster, BadTrace
from workbench.simulate.workload import Cluster, LeftOut, SimJob, Trace, Workload


def job(id_: str, submit_s: float = 0.0, *, gpus: int = 1) -> SimJob:
    return SimJob(id=id_, submit_s=submit_s, service_s=60.0, gpus=gpus)


def test_jobs_are_sorted_by_time_and_then_by_id_where_numbers_count_as_numbers() -> None:
    ids = ["b", "10", "9", "a", "007"]
    workload = Workload.of("made up", [job("11", 5.0), *map(job, ids), job("8", 5.0)])
    assert [one.id for one in workload.jobs] == ["007", "9", "10", "a", "b", "8", "11"]


def test_an_id_of_five_thousand_digits_is_sorted_too() -> None:
    long = "9" * 5000
    assert [one.id for one in Workload.of("t", [job(long), job("3")]).jobs] == ["3", long]


def test_a_workload_without_jobs_or_with_an_id_twice_is_refused() -> None:
    with pytest.raises(BadTrace, match="made up has no job that can be simulated"):
        Workload.of("made up", [])
    with pytest.raises(BadTrace, match="two jobs with the id 'x'"):
        Workload.of("made up", [job("x"), job("x", 5.0)])


@pytest.mark.parametrize(
    ("text", "nodes", "gpus"), [("20x8", 20, 8), (" 1X1 ", 1, 1), ("02x04", 2, 4)]
)
def test_a_cluster_is_nodes_x_gpus(text: str, nodes: int, gpus: int) -> None:
    cluster = Cluster.parse(text)
    assert (cluster.nodes, cluster.gpus_per_node, cluster.gpus) == (nodes, gpus, nodes * gpus)


@pytest.mark.parametrize(
    "text", ["", "8", "x8", "20x", "0x8", "20x0", "-1x8", "2x8x8", "٢x٨", "2.5x8", "99999x9999"]
)
def test_another_spelling_of_a_cluster_is_refused_with_the_right_one(text: str) -> None:
    with pytest.raises(BadCluster) as caught:
        Cluster.parse(text)
    assert repr(text) in caught.value.message
    assert "20x8" in caught.value.next_step


def test_what_does_not_fit_is_left_out_and_counted() -> None:
    trace = Trace(workload=Workload.of("t", [job("1", gpus=4), job("2", gpus=5), job("3", gpus=9)]))
    assert trace.fitting(Cluster.parse("3x3")) is trace
    small = trace.fitting(Cluster.parse("1x4"))
    assert [one.id for one in small.workload.jobs] == ["1"]
    assert small.left_out == (LeftOut(reason="asking for more than the cluster's 4 GPUs", jobs=2),)
    with pytest.raises(BadTrace, match="no job that can be simulated"):
        trace.fitting(Cluster.parse("1x3"))


def test_the_last_part_of_a_trace_begins_that_long_before_its_last_submission() -> None:
    trace = Trace(workload=Workload.of("t", [job("1", 0.0), job("2", 50.0), job("3", 100.0)]))
    latest = trace.latest(50.0)
    assert [one.id for one in latest.workload.jobs] == ["2", "3"]
    assert [one.jobs for one in latest.left_out] == [1]
    assert trace.latest(100.0) is trace
