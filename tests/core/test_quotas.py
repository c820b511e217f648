"""Quotas of users and groups, the budget of class `high`, caps of arrays."""

import pytest

from tests.core.builders import ALICE, BOB, HIGH, LOW, Lab, jobs_of, submitted
from workbench.core.decisions import Grant
from workbench.core.errors import NeverFits
from workbench.core.events import JobSubmitted
from workbench.core.explain import explain, explain_waiting
from workbench.core.model import Array, JobId, Outcome, Preemption, PriorityClass, Shape, Uid
from workbench.core.quotas import DAY_S
from workbench.core.settings import Quota, Settings
from workbench.core.standings import in_order
from workbench.policies.fifo import Easy, FifoStrict

HOUR_S = 3600.0
CAROL = Uid(1003)


def of_group(lab: Lab, job: str, owner: Uid, group: str, **request: object) -> list[str]:
    event = submitted(lab.at, job, owner, **request)
    fields = {name: getattr(event, name) for name in event.__dataclass_fields__}
    return jobs_of(lab.send(JobSubmitted(**{**fields, "group": group})))


def reason_of(lab: Lab, job: str) -> str:
    return explain(lab.state, lab.scheduler.standings, JobId(job)).reason


def test_who_is_at_a_quota_waits_and_blocks_nobody() -> None:
    lab = Lab(gpus=4, settings=Settings(quota=Quota(gpus=2), fair_share=False))
    assert jobs_of(lab.submit("a1", gpus=2)) == ["a1"]
    assert lab.submit("a2", gpus=1) == []
    assert reason_of(lab, "a2") == "its owner may hold 2 GPUs at one time and holds 2"
    assert jobs_of(lab.submit("b1", BOB, gpus=1)) == ["b1"]
    assert jobs_of(lab.submit("a3", cores=1)) == ["a3"]
    assert jobs_of(lab.end("a1")) == ["a2"]


@pytest.mark.parametrize("policy", [FifoStrict(), Easy()])
def test_a_capped_user_at_the_head_of_a_strict_queue_blocks_nobody(policy: FifoStrict) -> None:
    lab = Lab(gpus=2, policy=policy, settings=Settings(quota=Quota(leases=1)))
    lab.submit("a1", gpus=1)
    assert lab.submit("a2", gpus=1) == []
    assert jobs_of(lab.submit("b1", BOB, gpus=1)) == ["b1"]


def test_several_starts_in_one_step_count_against_a_quota() -> None:
    lab = Lab(gpus=4, settings=Settings(quota=Quota(gpus=3)), agents=())
    for number in range(4):
        lab.submit(f"a{number}", gpus=1)
        lab.submit(f"b{number}", BOB, gpus=1)
    assert jobs_of(lab.connect(ALICE)) == ["a0", "a1", "a2"]
    assert jobs_of(lab.connect(BOB)) == ["b0"]


def test_a_user_may_have_a_quota_of_their_own() -> None:
    settings = Settings(quota=Quota(leases=1), user_quotas={BOB: Quota(leases=2)})
    lab = Lab(settings=settings)
    assert jobs_of(lab.submit("a1")) == ["a1"]
    assert lab.submit("a2") == []
    assert jobs_of(lab.submit("b1", BOB)) == ["b1"]
    assert jobs_of(lab.submit("b2", BOB)) == ["b2"]
    assert lab.submit("b3", BOB) == []


def test_a_job_counts_against_its_group_too() -> None:
    lab = Lab(gpus=3, settings=Settings(group_quotas={"vision": Quota(gpus=2)}))
    assert of_group(lab, "a", ALICE, "vision", gpus=1) == ["a"]
    assert of_group(lab, "b", BOB, "vision", gpus=1) == ["b"]
    assert of_group(lab, "c", BOB, "vision", gpus=1) == []
    assert reason_of(lab, "c") == "its group may hold 2 GPUs at one time and holds 2"
    assert of_group(lab, "d", BOB, "", gpus=1) == ["d"]
    assert jobs_of(lab.end("a")) == ["c"]


def test_who_has_spent_the_hours_of_a_week_waits_until_the_first_day_is_forgotten() -> None:
    lab = Lab(gpus=2, settings=Settings(quota=Quota(gpu_hours_a_week=10), bound_s=None))
    lab.submit("a1", gpus=2)
    lab.start("a1")
    lab.tick(5 * HOUR_S)
    lab.end("a1")
    assert lab.submit("a2", gpus=1) == []
    assert reason_of(lab, "a2") == "its owner has spent 10 GPU-hours in the last seven days"
    assert jobs_of(lab.submit("a3", cores=1)) == ["a3"]
    assert jobs_of(lab.submit("b1", BOB, gpus=1)) == ["b1"]
    at = 5 * HOUR_S
    while at < 7 * DAY_S:
        wakeup = lab.scheduler.next_wakeup()
        assert wakeup is not None
        at = wakeup
        decided = jobs_of(lab.tick(at))
        assert decided == (["a2"] if at == 7 * DAY_S else [])


def test_hours_are_counted_while_a_job_still_runs_and_over_midnight() -> None:
    lab = Lab(gpus=2, settings=Settings(quota=Quota(gpu_hours_a_week=10)))
    lab.submit("a1", gpus=1)
    lab.start("a1")
    lab.tick(9.5 * HOUR_S)
    assert jobs_of(lab.submit("a2", gpus=1)) == ["a2"]
    lab.end("a2")
    lab.tick(10 * HOUR_S)
    assert lab.submit("a3", gpus=1) == []
    lab.tick(30 * HOUR_S)
    lab.end("a1")
    assert lab.state.users[ALICE].days == ((0, 24 * HOUR_S), (1, 6 * HOUR_S))


def test_what_is_above_a_quota_is_refused_with_the_largest_that_is_not() -> None:
    settings = Settings(quota=Quota(gpus=2), group_quotas={"vision": Quota(gpus=1)})
    lab = Lab(gpus=4, settings=settings)
    with pytest.raises(NeverFits) as refusal:
        lab.submit("a", gpus=3)
    assert str(refusal.value) == (
        "gpus=3: your quota is 2 GPUs at one time. Ask for at most 2 GPUs"
    )
    with pytest.raises(NeverFits, match="the group vision's quota is 1 GPU at one time"):
        of_group(lab, "b", ALICE, "vision", gpus=2)


def test_beyond_its_budget_a_high_job_counts_as_normal_and_says_so() -> None:
    lab = Lab(gpus=2, settings=Settings(fair_share=False))
    lab.submit("block", BOB, gpus=2)
    lab.submit("n", BOB, gpus=1)
    lab.submit("h1", gpus=1, priority=HIGH)
    lab.submit("h2", gpus=1, priority=HIGH)
    grants = [one for one in lab.end("block") if isinstance(one, Grant)]
    assert [(one.job, one.counts_as) for one in grants] == [("h1", None), ("n", None)]
    assert "its owner's budget of class high is used" in reason_of(lab, "h2")
    (grant,) = lab.end("n")
    assert isinstance(grant, Grant)
    assert (grant.job, grant.counts_as) == ("h2", PriorityClass.NORMAL)
    assert lab.state.high[ALICE].leases == 1


def test_the_order_that_is_shown_is_that_of_the_budget() -> None:
    lab = Lab(gpus=1, settings=Settings(fair_share=False))
    lab.submit("h0", gpus=1, priority=HIGH)
    lab.submit("n", BOB, gpus=1)
    lab.submit("h1", gpus=1, priority=HIGH)
    lab.submit("h2", BOB, gpus=1, priority=HIGH)
    assert [job.id for job in in_order(lab.state, lab.scheduler.standings)] == ["h2", "n", "h1"]
    assert list(explain_waiting(lab.state, lab.scheduler.standings)) == ["h2", "n", "h1"]


def test_a_high_job_beyond_its_budget_gives_way_to_one_within() -> None:
    lab = Lab(gpus=2)
    lab.submit("h1", gpus=1, priority=HIGH, preemption=(Preemption.REQUEUE,))
    lab.submit("h2", gpus=1, priority=HIGH, preemption=(Preemption.REQUEUE,))
    lab.start("h1")
    lab.start("h2")
    lab.tick(100)
    (preempt,) = lab.submit("h3", BOB, gpus=1, priority=HIGH)
    assert preempt.job == "h2"


def test_the_budget_may_be_of_gpu_hours() -> None:
    lab = Lab(gpus=2, settings=Settings(high=Quota(gpu_hours_a_week=1)))
    lab.submit("h1", gpus=1, priority=HIGH)
    lab.submit("h2", gpus=1, priority=HIGH)
    lab.start("h1")
    lab.tick(HOUR_S)
    lab.end("h1")
    lab.end("h2")
    (grant,) = lab.submit("h3", gpus=1, priority=HIGH)
    assert isinstance(grant, Grant)
    assert grant.counts_as is PriorityClass.NORMAL


def test_only_so_many_jobs_of_an_array_run_at_one_time() -> None:
    lab = Lab(gpus=4)
    sweep = Array("sweep", 2)
    granted = [jobs_of(lab.submit(f"a{number}", gpus=1, array=sweep)) for number in range(4)]
    assert granted == [["a0"], ["a1"], [], []]
    assert reason_of(lab, "a3") == "its array runs 2 jobs at one time"
    assert jobs_of(lab.submit("other", gpus=1)) == ["other"]
    assert jobs_of(lab.submit("b0", BOB, gpus=1, array=sweep)) == ["b0"]
    assert jobs_of(lab.end("a0")) == ["a2"]
    for job in ("a1", "a2", "a3", "b0", "other"):
        lab.end(job)
    assert not lab.state.arrays


def test_an_array_that_runs_nothing_is_refused() -> None:
    with pytest.raises(NeverFits, match=r"array\.at_once=0 is less than 1"):
        Lab().submit("a", array=Array("sweep", 0))


def test_the_next_best_is_taken_where_nothing_better_is_free() -> None:
    lab = Lab(gpus=1, cores=16)
    cores = Shape(0, 0, 8, 0)
    for job in ("a", "b"):
        lab.submit(job, gpus=1, alternatives=(cores,))
    assert len(lab.gpus_of("a")) == 1
    assert lab.gpus_of("b") == []
    grant = lab.job("b").grant
    assert grant is not None
    assert grant.units.cores == 8
    assert "8 cores in place of 1 GPU" in grant.reason


def test_a_capped_user_gets_the_alternative_that_is_within_the_quota() -> None:
    lab = Lab(gpus=2, settings=Settings(quota=Quota(gpus=1)))
    lab.submit("a", gpus=1)
    lab.submit("b", gpus=1, alternatives=(Shape(0, 0, 8, 0),))
    assert lab.gpus_of("b") == []
    assert lab.job("b").grant is not None


def test_a_request_is_refused_only_if_no_alternative_can_ever_run() -> None:
    lab = Lab(gpus=1, cores=4)
    assert jobs_of(lab.submit("a", gpus=2, alternatives=(Shape(1, 0, 1, 0),))) == ["a"]
    with pytest.raises(NeverFits, match="gpus=2: this host has 1 GPU"):
        lab.submit("b", gpus=2, alternatives=(Shape(0, 0, 8, 0),))
    with pytest.raises(NeverFits, match="cores=0 is less than 1"):
        lab.submit("c", gpus=1, alternatives=(Shape(0, 0, 0, 0),))


def test_a_waiting_job_says_what_else_it_waits_for() -> None:
    lab = Lab(gpus=1, cores=4)
    lab.submit("a", BOB, gpus=1, cores=4)
    lab.submit("b", gpus=1, alternatives=(Shape(0, 0, 4, 0),))
    reason = reason_of(lab, "b")
    assert "1 GPU" in reason
    assert ", or it waits for 4 cores" in reason


def test_a_low_job_that_failed_keeps_its_number_of_tries_over_a_preemption() -> None:
    lab = Lab(gpus=1)
    lab.submit(
        "a", gpus=1, priority=LOW, retries=1, retry_delay_s=1.0, preemption=(Preemption.REQUEUE,)
    )
    lab.start("a")
    lab.end("a", Outcome.FAILED)
    lab.tick(1)
    lab.start("a")
    lab.tick(100)
    lab.submit("h", BOB, gpus=1, priority=HIGH)
    lab.end("a", Outcome.KILLED)
    assert (lab.job("a").failures, lab.job("a").preemptions) == (1, 1)
    lab.end("h")
    lab.start("a")
    lab.end("a", Outcome.FAILED)
    assert lab.job("a").outcome is Outcome.FAILED
