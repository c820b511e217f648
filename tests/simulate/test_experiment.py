from __future__ import annotations

from pathlib import Path

import pytest

from workbench.policies import DEFAULT_POLICY, POLICIES
from workbench.simulate.errors import UnknownPolicy
from workbench.simulate.experiment import DEFAULT, Settings, compare, policy_named, try_policy
from workbench.simulate.traces import read_trace
from workbench.simulate.workload import Cluster

TIRESIAS = Path(__file__).parent / "traces" / "tiresias_60.csv"
POOL = Settings(placement="pool", fair_share=False)


def test_a_result_has_every_job_once_and_says_which_policy() -> None:
    workload = read_trace(TIRESIAS).workload
    result = try_policy(workload, Cluster.parse("2x4"), DEFAULT, POOL)
    assert result.policy == DEFAULT_POLICY
    assert sorted(r.job.id for r in result.records) == sorted(job.id for job in workload.jobs)
    assert result.report.jobs == len(workload.jobs)
    for record in result.records:
        assert record.wait_s >= -1e-6
        assert record.end_s == record.stints[-1].end_s
        assert {len(stint.gpus) for stint in record.stints} == {record.job.gpus}


def test_several_policies_come_back_in_the_order_in_which_they_were_named() -> None:
    workload = read_trace(TIRESIAS).workload
    results = compare(workload, Cluster.parse("2x4"), ["fifo-strict", "fifo"], POOL)
    assert [(r.policy, round(r.report.completion.mean, 1)) for r in results] == [
        ("fifo-strict", 1556.5),
        ("fifo", 715.3),
    ]


def test_an_unknown_policy_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(UnknownPolicy, match="no policy is called 'lifo'") as caught:
        policy_named("lifo")
    assert {*POLICIES, DEFAULT} <= {
        word.strip() for word in caught.value.next_step.removeprefix("Choose one of").split(",")
    }
    with pytest.raises(UnknownPolicy, match="'nonsense'"):
        compare(read_trace(TIRESIAS).workload, Cluster.parse("2x4"), ["fifo", "nonsense"])
