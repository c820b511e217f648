import pytest

from tests.core.builders import (
    ALICE,
    BOB,
    GIB,
    HIGH,
    LOW,
    Lab,
    gpu,
    grant,
    jobs_of,
    submitted,
)
from workbench.core.errors import IllegalEvent, UserError
from workbench.core.events import (
    Tick,
)
from workbench.core.model import JobState, Outcome, Units
from workbench.core.scheduler import Scheduler
from workbench.policies.fifo import Fifo


def test_a_job_that_fits_is_granted_at_once() -> None:
    lab = Lab(gpus=2)
    assert lab.submit("a", gpus=1, cores=4, memory_bytes=8 * GIB) == [
        grant(0, 0, 0, "a", Units(gpus=(gpu(0),), cores=4, memory_bytes=8 * GIB))
    ]
    assert lab.job("a").state is JobState.STARTING
    assert lab.start("a") == []
    assert lab.job("a").state is JobState.RUNNING
    assert lab.end("a") == []
    assert lab.job("a").outcome is Outcome.DONE
    assert lab.state.leases == {}


def test_no_decision_is_taken_for_nothing() -> None:
    lab = Lab(gpus=1)
    lab.submit("a", gpus=1)
    assert lab.submit("b", gpus=1) == []
    assert lab.tick(5) == []
    assert lab.connect(ALICE) == []
    assert lab.disconnect(BOB) == []


def test_of_a_hundred_one_gpu_jobs_on_five_gpus_exactly_five_run_at_any_time() -> None:
    """jupyter-server/jupyter-scheduler#447."""
    lab = Lab(gpus=5, cores=200)
    for number in range(100):
        lab.submit(f"j{number}", gpus=1)
        assert len(lab.state.leases) == min(number + 1, 5)
    finished: list[str] = []
    while lab.state.leases:
        job = next(iter(lab.state.leases.values()))
        lab.start(job)
        granted = lab.end(job)
        finished.append(job)
        left = 100 - len(finished)
        assert len(granted) == (1 if left >= 5 else 0)
        assert len(lab.state.leases) == min(left, 5)
    assert finished == [f"j{number}" for number in range(100)]


def test_equal_jobs_go_in_submit_order_and_an_urgent_one_is_considered_first() -> None:
    """skypilot-org/skypilot#5493."""
    lab = Lab(gpus=1)
    for number in range(40):
        lab.submit(f"j{number}", gpus=1)
    lab.submit("urgent", BOB, gpus=1, priority=HIGH)
    order = ["j0"]
    while lab.state.leases:
        granted = lab.end(order[-1])
        order += jobs_of(granted)
    assert order == ["j0", "urgent", *(f"j{number}" for number in range(1, 40))]


def test_classes_are_strict() -> None:
    lab = Lab(cores=1)
    lab.submit("first")
    lab.submit("low", priority=LOW)
    lab.submit("normal")
    lab.submit("high", priority=HIGH)
    assert jobs_of(lab.end("first")) == ["high"]
    assert jobs_of(lab.end("high")) == ["normal"]
    assert jobs_of(lab.end("normal")) == ["low"]


def test_a_job_that_does_not_fit_does_not_block_a_later_one_that_does() -> None:
    lab = Lab(gpus=2)
    lab.submit("a", gpus=1)
    assert lab.submit("gang", gpus=2, priority=HIGH) == []
    assert lab.submit("b", gpus=1) == [
        grant(
            1,
            0,
            1,
            "b",
            Units(gpus=(gpu(1),), cores=1),
            "class normal: it fits, and the jobs ahead of it do not yet",
        )
    ]


def test_a_gang_gets_its_gpus_all_at_once() -> None:
    lab = Lab(gpus=4)
    lab.submit("a", gpus=1)
    lab.submit("b", gpus=1)
    lab.submit("gang", gpus=3)
    assert lab.end("a") == [grant(2, 0, 2, "gang", Units(gpus=(gpu(0), gpu(2), gpu(3)), cores=1))]


def test_one_event_can_start_several_jobs() -> None:
    lab = Lab(gpus=2)
    lab.submit("gang", gpus=2)
    lab.submit("a", gpus=1)
    lab.submit("b", BOB, gpus=1)
    assert lab.end("gang") == [
        grant(1, 0, 1, "a", Units(gpus=(gpu(0),), cores=1)),
        grant(2, 0, 2, "b", Units(gpus=(gpu(1),), cores=1)),
    ]


def test_cores_and_memory_are_not_handed_out_twice() -> None:
    lab = Lab(cores=4, memory_gib=16)
    lab.submit("a", cores=3, memory_bytes=10 * GIB)
    assert lab.submit("cores", cores=2) == []
    assert lab.submit("memory", cores=1, memory_bytes=7 * GIB) == []
    assert jobs_of(lab.submit("fits", cores=1, memory_bytes=6 * GIB)) == ["fits"]
    assert jobs_of(lab.end("a")) == ["cores", "memory"]


def test_a_submission_that_is_repeated_changes_nothing() -> None:
    lab = Lab()
    lab.submit("a")
    lab.submit("b", cores=16)
    for job, request in (("a", {}), ("b", {"cores": 16})):
        assert lab.submit(job, **request) == []
    lab.end("a")
    assert lab.submit("a") == []
    assert lab.job("a").state is JobState.ENDED


def test_a_job_id_is_never_used_for_another_job() -> None:
    lab = Lab()
    lab.submit("a")
    with pytest.raises(UserError, match="the job id a belongs to another job"):
        lab.submit("a", cores=2)
    with pytest.raises(UserError, match="the job id a belongs to another job"):
        lab.submit("a", BOB)


def test_only_an_owner_whose_agent_is_connected_gets_a_lease() -> None:
    lab = Lab(cores=1, agents=(BOB,))
    assert lab.submit("a") == []
    assert jobs_of(lab.submit("b", BOB)) == ["b"]
    assert lab.connect(ALICE) == []
    assert jobs_of(lab.end("b")) == ["a"]


def test_an_agent_that_connects_again_is_there_since_the_first_time() -> None:
    lab = Lab(agents=(ALICE,))
    lab.at = 5
    lab.connect(ALICE)
    assert lab.state.agents == {ALICE: 0}


def test_a_lost_agent_keeps_its_leases() -> None:
    lab = Lab(gpus=1)
    lab.submit("a", gpus=1)
    lab.start("a")
    assert lab.disconnect(ALICE) == []
    assert lab.submit("b", BOB, gpus=1) == []
    assert lab.job("a").state is JobState.RUNNING


def test_the_clock_never_goes_back() -> None:
    lab = Lab()
    lab.tick(10)
    for at in (9.9, float("nan"), float("inf")):
        with pytest.raises(IllegalEvent, match="the clock is at 10 and never goes back"):
            lab.send(Tick(at=at))


def test_unconfirmed_decisions_are_those_that_no_event_confirmed() -> None:
    lab = Lab()
    for job in ("starting", "running", "stopping", "ended"):
        lab.submit(job)
    lab.start("running")
    lab.start("stopping")
    lab.cancel("stopping")
    lab.end("ended")
    lab.submit("later")
    assert [(type(d).__name__, d.job) for d in lab.scheduler.unconfirmed()] == [
        ("Grant", "starting"),
        ("Stop", "stopping"),
        ("Grant", "later"),
    ]


def test_restoring_asks_no_policy() -> None:
    lab = Lab(gpus=2)
    lab.submit("a", gpus=1)
    lab.submit("b", gpus=2)

    class Reversed(Fifo):
        def waiting_key(self, state: object, job: object, /) -> tuple[float, ...]:
            raise AssertionError("a restart asked the policy about a job that no longer waits")

    lab.end("a")
    lab.end("b")
    restored = Scheduler.restore(Reversed(), lab.entries)
    assert restored.state == lab.state


def test_a_journal_that_no_scheduler_wrote_is_refused() -> None:
    wrong = [submitted(0, "a"), grant(0, 0, 0, "a", Units(cores=1))]
    with pytest.raises(IllegalEvent, match="the owner's agent is not connected"):
        Scheduler.restore(Fifo(), wrong)
