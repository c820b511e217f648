import pytest

from tests.core.builders import (
    ALICE,
    Lab,
    jobs_of,
)
from workbench.core.decisions import End, Stop
from workbench.core.errors import IllegalEvent, UserError
from workbench.core.events import (
    LeaseEnded,
    LeaseStarted,
)
from workbench.core.model import JobId, JobState, LeaseId, Outcome


def test_a_cancelled_job_never_starts() -> None:
    lab = Lab(cores=1)
    lab.submit("a")
    lab.submit("b")
    assert lab.cancel("b") == [
        End(id=1, at=0, job=JobId("b"), outcome=Outcome.CANCELLED, reason="enough")
    ]
    assert lab.cancel("b") == []
    assert lab.end("a") == []
    assert (lab.job("b").outcome, lab.job("b").detail) == (Outcome.CANCELLED, "enough")


@pytest.mark.parametrize("is_started", [False, True])
def test_a_cancelled_lease_is_stopped_once_and_frees_its_units_when_it_ends(
    *, is_started: bool
) -> None:
    lab = Lab(gpus=1)
    lab.submit("a", gpus=1)
    lab.submit("b", gpus=1)
    if is_started:
        lab.start("a")
    stop = Stop(
        id=1,
        at=0,
        lease=LeaseId("L0"),
        job=JobId("a"),
        outcome=Outcome.CANCELLED,
        reason="enough",
    )
    assert lab.cancel("a") == [stop]
    assert lab.cancel("a", "again") == []
    assert lab.scheduler.unconfirmed() == [stop]
    assert jobs_of(lab.end("a", Outcome.KILLED, "by a signal")) == ["b"]
    assert (lab.job("a").outcome, lab.job("a").detail) == (Outcome.CANCELLED, "enough")


def test_a_start_that_a_stop_overtook_is_noted_and_the_stop_stands() -> None:
    lab = Lab()
    lab.submit("a", time_limit_s=10)
    lab.cancel("a")
    assert lab.start("a") == []
    assert lab.job("a").state is JobState.STOPPING
    assert lab.scheduler.next_wakeup() is None


def test_a_job_that_was_done_before_the_stop_came_is_done() -> None:
    lab = Lab()
    lab.submit("a")
    lab.start("a")
    lab.cancel("a")
    lab.end("a")
    assert (lab.job("a").outcome, lab.job("a").detail) == (Outcome.DONE, "")


def test_cancelling_an_unknown_job_is_the_users_error() -> None:
    with pytest.raises(UserError, match="no job zz is known here"):
        Lab().cancel("zz")


def test_a_time_limit_counts_from_the_start_not_from_the_grant() -> None:
    lab = Lab()
    lab.submit("a", time_limit_s=10)
    lab.tick(100)
    assert lab.scheduler.next_wakeup() is None
    lab.start("a")
    assert lab.scheduler.next_wakeup() == 110
    assert lab.tick(109.9) == []
    assert lab.tick(110) == [
        Stop(
            id=1,
            at=110,
            lease=LeaseId("L0"),
            job=JobId("a"),
            outcome=Outcome.TIMED_OUT,
            reason="it ran longer than its limit of 10 s",
        )
    ]
    assert lab.tick(120) == []
    lab.end("a", Outcome.FAILED, "exit status 1")
    assert lab.job("a").outcome is Outcome.TIMED_OUT


def test_a_repeated_start_does_not_move_the_time_limit() -> None:
    lab = Lab()
    lab.submit("a", time_limit_s=10)
    lab.start("a")
    lab.tick(5)
    lab.start("a")
    assert lab.scheduler.next_wakeup() == 10


def test_a_job_that_waits_too_long_leaves_the_queue() -> None:
    lab = Lab(cores=1)
    lab.submit("a")
    lab.submit("b", wait_limit_s=20)
    assert lab.scheduler.next_wakeup() == 20
    assert lab.tick(20) == [
        End(
            id=1,
            at=20,
            job=JobId("b"),
            outcome=Outcome.EXPIRED,
            reason="it waited longer than its limit of 20 s",
        )
    ]
    assert lab.scheduler.next_wakeup() is None


def test_a_job_whose_time_is_over_does_not_get_what_comes_free_at_that_moment() -> None:
    lab = Lab(cores=1)
    lab.submit("a")
    lab.submit("b", wait_limit_s=20)
    lab.submit("c")
    lab.at = 20
    expired, granted = lab.end("a")
    assert isinstance(expired, End)
    assert (expired.job, granted.job) == ("b", "c")


def test_the_next_wakeup_is_the_nearest_deadline() -> None:
    lab = Lab(cores=1)
    lab.submit("a")
    lab.submit("b", wait_limit_s=30)
    lab.submit("c", wait_limit_s=20)
    assert lab.scheduler.next_wakeup() == 20
    lab.tick(20)
    assert lab.scheduler.next_wakeup() == 30


def test_a_job_that_got_its_lease_in_time_does_not_expire() -> None:
    lab = Lab()
    lab.submit("a", wait_limit_s=20)
    assert lab.tick(30) == []


def test_a_job_that_is_cancelled_as_its_time_ends_is_cancelled_once() -> None:
    lab = Lab(cores=1)
    lab.submit("a", time_limit_s=10)
    lab.start("a")
    lab.submit("b", wait_limit_s=10)
    lab.at = 10
    (ended, *others) = lab.cancel("b")
    assert isinstance(ended, End)
    assert ended.outcome is Outcome.CANCELLED
    assert jobs_of(others) == ["a"]
    lab = Lab()
    lab.submit("a", time_limit_s=10)
    lab.start("a")
    lab.at = 10
    (stop,) = lab.cancel("a")
    assert isinstance(stop, Stop)
    assert stop.outcome is Outcome.CANCELLED


def test_a_reboot_ends_all_leases_as_lost_and_keeps_the_queue() -> None:
    lab = Lab(gpus=1)
    lab.submit("starting")
    lab.submit("running", gpus=1)
    lab.submit("waiting", gpus=1)
    lab.start("running")
    assert lab.reboot() == []
    for job in ("starting", "running"):
        assert lab.job(job).outcome is Outcome.LOST
        assert lab.job(job).detail == "the host was restarted"
    assert jobs_of(lab.connect(ALICE)) == ["waiting"]


def test_a_job_that_was_being_cancelled_as_the_host_went_down_is_cancelled() -> None:
    lab = Lab()
    lab.submit("a")
    lab.cancel("a")
    lab.reboot()
    assert lab.job("a").outcome is Outcome.CANCELLED


def test_a_lease_that_is_over_ends_again_without_effect() -> None:
    lab = Lab()
    lab.submit("a")
    lab.end("a")
    over = LeaseEnded(at=0, lease=LeaseId("L0"), outcome=Outcome.FAILED, detail="late")
    assert lab.send(over) == []
    assert lab.job("a").outcome is Outcome.DONE


def test_a_lease_that_is_over_cannot_start() -> None:
    lab = Lab()
    lab.submit("a")
    lab.end("a")
    with pytest.raises(IllegalEvent, match="while its job is ended"):
        lab.send(LeaseStarted(at=0, lease=LeaseId("L0")))


@pytest.mark.parametrize("lease", ["L1", "L-1", "M0", ""])
def test_a_lease_that_never_was_is_refused(lease: str) -> None:
    lab = Lab()
    lab.submit("a")
    with pytest.raises(IllegalEvent, match="there never was such a lease"):
        lab.send(LeaseStarted(at=0, lease=LeaseId(lease)))


def test_ended_jobs_are_kept_in_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.core.filing.ENDED_JOBS_KEPT", 3)
    lab = Lab()
    for number in range(5):
        lab.submit(f"j{number}")
        lab.end(f"j{number}")
    assert list(lab.state.ended) == ["j2", "j3", "j4"]
