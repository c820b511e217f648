import pytest

from tests.core.builders import BOB, HIGH, Lab, gpu, jobs_of, seen
from workbench.core.errors import UserError
from workbench.core.events import DrainEnded, DrainStarted
from workbench.core.explain import explain
from workbench.core.model import JobId, JobState, Preemption


def drain(lab: Lab, node: str = "", reason: str = "new driver at 18:00") -> list[str]:
    return jobs_of(lab.send(DrainStarted(at=lab.at, node=node, reason=reason)))


def resume(lab: Lab, node: str = "") -> list[str]:
    return jobs_of(lab.send(DrainEnded(at=lab.at, node=node)))


def reason(lab: Lab, job: str) -> str:
    return explain(lab.state, lab.scheduler.standings, JobId(job)).reason


def two_nodes() -> Lab:
    lab = Lab()
    for number in range(4):
        lab.send(seen(0, number, node=f"node{number // 2}"))
    return lab


def test_on_a_drained_host_nothing_starts_not_even_without_a_gpu() -> None:
    lab = Lab(gpus=2)
    drain(lab)
    assert lab.submit("a", gpus=1) == []
    assert lab.submit("b") == []
    told = explain(lab.state, lab.scheduler.standings, JobId("b"))
    assert told.reason == "this host is drained, nothing new starts: new driver at 18:00"
    assert told.estimate_reason == "unknown: this host is drained"
    assert resume(lab) == ["a", "b"]


def test_what_ends_on_a_drained_host_lets_nothing_start() -> None:
    lab = Lab(cores=4)
    lab.submit("a", cores=4)
    drain(lab)
    lab.submit("b", cores=1)
    assert lab.end("a") == []
    assert resume(lab) == ["b"]


def test_nobody_gives_way_to_a_job_that_a_drain_keeps_from_starting() -> None:
    lab = Lab(gpus=1)
    lab.submit("a", gpus=1, preemption=(Preemption.REQUEUE,))
    lab.start("a")
    lab.tick(100)
    drain(lab)
    assert lab.submit("b", BOB, gpus=1, priority=HIGH) == []
    assert lab.job("a").state is JobState.RUNNING


def test_a_drained_node_gets_no_job_and_the_others_do() -> None:
    lab = two_nodes()
    drain(lab, "node0", "a fan is replaced")
    lab.submit("a", gpus=2)
    assert lab.gpus_of("a") == [gpu(2), gpu(3)]
    assert lab.submit("b", gpus=1) == []
    assert reason(lab, "b") == (
        "it waits for 1 GPU, 0 free:"
        " GPU-00000000 is on node0, which is drained (a fan is replaced),"
        " GPU-00000001 is on node0, which is drained (a fan is replaced),"
        " GPU-00000002 is held by job a, GPU-00000003 is held by job a"
    )
    assert jobs_of(lab.submit("c")) == ["c"]
    assert resume(lab, "node0") == ["b"]


def test_the_latest_reason_of_a_drain_counts_and_its_end_may_be_told_twice() -> None:
    lab = Lab()
    drain(lab)
    drain(lab, reason="the power is cut")
    lab.submit("a")
    assert reason(lab, "a").endswith("the power is cut")
    assert resume(lab) == ["a"]
    assert resume(lab) == []


@pytest.mark.parametrize(
    ("lab", "next_step"),
    [(two_nodes(), "Drain one of node0, node1"), (Lab(gpus=1), "Drain the host itself")],
)
def test_a_node_that_is_not_known_is_not_drained(lab: Lab, next_step: str) -> None:
    with pytest.raises(UserError) as refusal:
        drain(lab, "node7")
    assert refusal.value.message == "node=node7: no such node is known here"
    assert refusal.value.next_step == next_step
