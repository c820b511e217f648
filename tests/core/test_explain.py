import pytest

from tests.core.builders import ALICE, BOB, GIB, HIGH, Lab, seen
from workbench.core.errors import UserError
from workbench.core.estimate import LOOK_AHEAD_JOBS
from workbench.core.events import DispatchHeld, HostSeen
from workbench.core.explain import Explanation, explain, explain_waiting
from workbench.core.model import JobId, Outcome
from workbench.core.settings import Quota, Settings

NO_AGENT = "its agent is not running: open Jupyter or run `workbench up`"
ASSUMED = "if no job runs longer than its time limit and no other job comes in ahead"


def told(lab: Lab, job: str) -> Explanation:
    return explain(lab.state, lab.scheduler.standings, JobId(job))


def test_a_waiting_job_is_told_its_place_the_reason_and_a_range() -> None:
    lab = Lab(gpus=2)
    lab.submit("a", gpus=1, time_limit_s=300)
    lab.submit("b", gpus=1, time_limit_s=100)
    lab.start("a")
    lab.start("b")
    lab.tick(40)
    lab.submit("c", gpus=2)
    assert told(lab, "c") == Explanation(
        place=1,
        reason=(
            "it waits for 2 GPUs, 0 free: GPU-00000000 is held by job a, GPU-00000001 is held by job b"
        ),
        low_s=0.0,
        high_s=260.0,
        estimate_reason=ASSUMED,
        sooner=(
            "with 1 GPU in place of 2 it would start within 1 min",
            "with no GPU it would start now",
        ),
    )
    lab.submit("d", gpus=1)
    assert told(lab, "d").high_s == 60


def test_places_count_higher_classes_first() -> None:
    lab = Lab(cores=1)
    for job in ("running", "a", "b"):
        lab.submit(job)
    lab.submit("urgent", BOB, priority=HIGH)
    assert {
        job: e.place for job, e in explain_waiting(lab.state, lab.scheduler.standings).items()
    } == {
        "urgent": 1,
        "a": 2,
        "b": 3,
    }
    assert told(lab, "running").place is None


def test_the_estimate_lets_the_jobs_ahead_go_first() -> None:
    lab = Lab(cores=1)
    lab.submit("running", time_limit_s=10)
    lab.start("running")
    lab.submit("a", time_limit_s=20)
    lab.submit("b", time_limit_s=30)
    lab.submit("c")
    lab.submit("d")
    assert [told(lab, job).high_s for job in "abcd"] == [10, 30, 60, None]
    assert told(lab, "d").estimate_reason == (
        "unknown: a job ahead has no time limit, or units are out of service"
    )


def test_an_estimate_without_limits_is_unknown_and_says_which_lease_is_to_blame() -> None:
    lab = Lab(gpus=1)
    lab.submit("cpu")
    lab.submit("a", gpus=1)
    lab.submit("b", gpus=1)
    told_b = told(lab, "b")
    assert (told_b.low_s, told_b.high_s) == (0.0, None)
    assert told_b.estimate_reason == "unknown: job a has no time limit"
    lab.cancel("a")
    assert told(lab, "b").estimate_reason == "unknown: job a is being stopped"


def test_nobody_knows_how_long_a_job_takes_to_stop() -> None:
    lab = Lab(cores=1)
    lab.submit("a", time_limit_s=10)
    lab.start("a")
    lab.tick(10)
    lab.submit("b")
    assert told(lab, "b").high_s is None
    assert told(lab, "b").estimate_reason == "unknown: job a is being stopped"


def test_far_behind_in_the_queue_an_estimate_is_unknown() -> None:
    lab = Lab(cores=1)
    for number in range(LOOK_AHEAD_JOBS + 2):
        lab.submit(f"j{number}", time_limit_s=1)
    assert told(lab, f"j{LOOK_AHEAD_JOBS}").high_s == LOOK_AHEAD_JOBS
    assert told(lab, f"j{LOOK_AHEAD_JOBS + 1}").estimate_reason == (
        f"unknown: at least {LOOK_AHEAD_JOBS} jobs are ahead of it"
    )


def test_a_job_whose_agent_is_not_running_is_told_what_to_do() -> None:
    lab = Lab(agents=())
    lab.submit("a")
    assert told(lab, "a") == Explanation(
        place=1,
        reason=NO_AGENT,
        low_s=None,
        high_s=None,
        estimate_reason="unknown: its agent is not running",
    )
    lab.connect(ALICE)
    lab.disconnect(ALICE)
    assert told(lab, "a").reason == NO_AGENT


def test_a_job_that_waits_for_a_lost_or_missing_gpu_is_told_so() -> None:
    lab = Lab(gpus=3)
    lab.lose(0)
    lab.lose(1, missing=True)
    lab.submit("a", gpus=2)
    assert told(lab, "a").reason == (
        "it waits for 2 GPUs, 1 free: GPU-00000000 is lost (Xid 79),"
        " GPU-00000001 is missing (not listed)"
    )


def test_gpus_that_are_not_simulated_any_more_are_not_waited_for() -> None:
    lab = Lab(gpus=1)
    lab.send(seen(0, 1, simulated=True))
    lab.lose(1, missing=True)
    lab.submit("a", gpus=1)
    lab.submit("b", gpus=1)
    assert told(lab, "b").reason == ("it waits for 1 GPU, 0 free: GPU-00000000 is held by job a")


def test_in_a_simulated_lab_the_missing_real_gpus_are_not_waited_for() -> None:
    lab = Lab(gpus=1)
    lab.lose(0, missing=True)
    lab.send(seen(0, 1, simulated=True))
    lab.submit("a", gpus=1)
    lab.submit("b", gpus=1)
    assert told(lab, "b").reason == ("it waits for 1 GPU, 0 free: GPU-00000001 is held by job a")


def test_a_job_that_waits_for_a_gpu_that_is_busy_outside_is_told_by_whom() -> None:
    lab = Lab()
    lab.send(seen(0, 0, busy_outside="python of uid 1009"))
    lab.submit("a", gpus=1)
    assert told(lab, "a").reason == (
        "it waits for 1 GPU, 0 free: GPU-00000000 is busy outside (python of uid 1009)"
    )


def test_a_long_list_of_gpus_is_cut() -> None:
    lab = Lab(gpus=8)
    lab.submit("a", gpus=8, gpu_memory_bytes=40 * GIB)
    lab.submit("b", gpus=1, gpu_memory_bytes=40 * GIB)
    reason = told(lab, "b").reason
    assert reason.startswith("it waits for 1 GPU with 40 GiB each, 0 free: GPU-00000000 is held")
    assert reason.endswith("GPU-00000003 is held by job a, 4 more")


def test_while_dispatch_is_held_a_gpu_job_is_told_why() -> None:
    lab = Lab(gpus=1)
    lab.send(DispatchHeld(at=0, reason="driver mismatch, reboot needed"))
    lab.submit("a", gpus=1)
    assert told(lab, "a").reason == "no GPU is handed out now: driver mismatch, reboot needed"
    assert told(lab, "a").estimate_reason == "unknown: no GPU is handed out now"


def test_a_job_that_waits_for_cores_and_memory_is_told_how_many_are_free() -> None:
    lab = Lab(cores=8, memory_gib=32)
    lab.submit("a", cores=6, memory_bytes=30 * GIB)
    lab.submit("b", cores=4, memory_bytes=4 * GIB)
    assert told(lab, "b").reason == (
        "it waits for 4 cores, 2 of 8 free; it waits for 4 GiB of host memory, 2 GiB of 32 GiB free"
    )
    lab.send(HostSeen(at=0, cores=2, memory_bytes=GIB))
    assert "4 cores, 0 of 2 free" in told(lab, "b").reason


def test_a_job_that_runs_is_told_why_it_was_its_turn() -> None:
    lab = Lab()
    lab.submit("a")
    assert told(lab, "a").reason == "class normal: it is its turn"
    lab.disconnect(ALICE)
    assert told(lab, "a").reason == NO_AGENT
    lab.start("a")
    assert told(lab, "a").reason == "class normal: it is its turn"
    lab.cancel("a", "not needed")
    assert told(lab, "a").reason == "not needed"


def test_an_ended_job_is_told_how_it_ended() -> None:
    lab = Lab()
    lab.submit("a")
    lab.end("a", Outcome.KILLED, "killed (SIGKILL, likely out of memory)")
    assert told(lab, "a") == Explanation(
        place=None,
        reason="killed (SIGKILL, likely out of memory)",
        low_s=None,
        high_s=None,
        estimate_reason="",
    )


def test_an_unknown_job_cannot_be_explained() -> None:
    lab = Lab()
    with pytest.raises(UserError, match="no job zz is known here"):
        told(lab, "zz")


def test_a_range_goes_from_what_is_expected_to_what_is_allowed() -> None:
    lab = Lab(cores=1)
    lab.submit("running", time_limit_s=100, expected_s=20)
    lab.start("running")
    lab.tick(5)
    lab.submit("a", time_limit_s=50, expected_s=10)
    lab.submit("b")
    assert (told(lab, "a").low_s, told(lab, "a").high_s) == (15, 95)
    assert (told(lab, "b").low_s, told(lab, "b").high_s) == (25, 145)


def test_nobody_who_is_at_a_quota_is_promised_a_time() -> None:
    lab = Lab(gpus=2, settings=Settings(quota=Quota(gpus=1)))
    lab.submit("a", gpus=1, time_limit_s=10)
    lab.submit("b", gpus=1)
    assert told(lab, "b").estimate_reason == "unknown: it is held back by a limit"


def test_what_would_start_sooner_is_named_the_likest_first() -> None:
    lab = Lab(gpus=4, cores=8)
    lab.submit("a", BOB, gpus=3, cores=4, time_limit_s=7200)
    lab.start("a")
    lab.submit("b", gpus=2, cores=2)
    assert told(lab, "b").sooner == ("with 1 GPU in place of 2 it would start now",)
    lab.submit("c", BOB, gpus=1, cores=1)
    assert told(lab, "b").sooner == ("with no GPU it would start now",)
    lab.submit("d", BOB, cores=3)
    assert told(lab, "b").sooner == ()


def test_what_would_start_within_a_time_is_worth_saying_only_if_it_is_clearly_sooner() -> None:
    lab = Lab(gpus=4, cores=4)
    lab.submit("a", BOB, gpus=2, cores=2, time_limit_s=3600)
    lab.submit("b", BOB, gpus=2, cores=2, time_limit_s=600)
    lab.start("a")
    lab.start("b")
    lab.submit("c", gpus=4, cores=2)
    assert told(lab, "c").sooner == ("with 2 GPUs in place of 4 it would start within 10 min",)
    assert told(lab, "c").high_s == 3600


def test_a_smaller_gpu_is_named_where_it_would_do() -> None:
    lab = Lab()
    lab.send(seen(0, 0, memory_gib=80))
    lab.send(seen(0, 1, memory_gib=40))
    lab.submit("a", BOB, gpus=1, gpu_memory_bytes=60 * GIB)
    lab.submit("b", gpus=1, gpu_memory_bytes=60 * GIB)
    assert told(lab, "b").sooner == ("with 40 GiB of memory a GPU it would start now",)


def test_who_is_at_a_quota_is_told_what_is_within_it() -> None:
    lab = Lab(gpus=4, settings=Settings(quota=Quota(gpus=2)))
    lab.submit("a", gpus=1)
    lab.submit("b", gpus=2)
    assert told(lab, "b").sooner == ("with 1 GPU in place of 2 it would start now",)
