import pytest

from tests.core.builders import ALICE, BOB, Lab, jobs_of
from workbench.core.errors import IllegalEvent
from workbench.core.events import FairShareSet
from workbench.core.fairness import rank, share, used_s
from workbench.core.model import Preemption
from workbench.core.settings import Settings
from workbench.core.standings import in_order
from workbench.core.state import CORE_WEIGHT, HALF_LIFE_S, State, Usage
from workbench.policies.fifo import Fifo
from workbench.policies.gittins import Gittins


def test_what_was_used_a_half_life_ago_counts_half() -> None:
    assert used_s(State(), Usage(1000.0, 5.0, 0.0), 5.0 + HALF_LIFE_S) == pytest.approx(500.0)


def test_use_is_reckoned_alike_in_one_step_and_in_many() -> None:
    once = used_s(State(), Usage(10.0, 0.0, 2.0), 5000.0)
    usage = Usage(10.0, 0.0, 2.0)
    for at in range(100, 5001, 100):
        usage = Usage(used_s(State(), usage, float(at)), float(at), 2.0)
    assert usage.weighted_s == pytest.approx(once)
    assert once == pytest.approx(10_010, rel=0.01)


def test_a_lease_is_charged_from_grant_to_end() -> None:
    lab = Lab(gpus=2)
    lab.submit("a", gpus=2)
    lab.submit("b", BOB, cores=4)
    lab.start("a")
    lab.tick(100.0)
    lab.end("a")
    lab.tick(200.0)
    assert used_s(lab.state, lab.state.usage[ALICE], lab.at) == pytest.approx(200.0, rel=0.001)
    assert used_s(lab.state, lab.state.usage[BOB], lab.at) == pytest.approx(
        800.0 * CORE_WEIGHT, rel=0.001
    )


def test_who_used_twice_as_much_stands_one_share_lower() -> None:
    lab = Lab(gpus=1)
    lab.submit("a", gpus=1)
    assert share(lab.state, ALICE) == 0
    lab.tick(2.1 * 3600.0)
    assert share(lab.state, ALICE) == 2
    lab.tick(4.2 * 3600.0)
    assert share(lab.state, ALICE) == 3
    assert share(lab.state, BOB) == 0


@pytest.mark.parametrize(("is_fair", "first"), [(True, "b"), (False, "a")])
def test_the_one_who_used_less_comes_first_within_a_class(*, is_fair: bool, first: str) -> None:
    rules = Settings(fair_share=is_fair, bound_s=None, ageing_s=None)
    lab = Lab(gpus=1, settings=rules)
    lab.submit("used", gpus=1)
    lab.start("used")
    lab.tick(24 * 3600.0)
    lab.submit("a", gpus=1)
    lab.submit("b", BOB, gpus=1)
    assert jobs_of(lab.end("used")) == [first]


def test_a_lab_may_let_use_fade_sooner_and_weigh_cores_otherwise() -> None:
    lab = Lab(gpus=1, cores=16)
    lab.submit("a", gpus=1)
    lab.submit("b", BOB, cores=8)
    lab.tick(3600.0)
    before_s = used_s(lab.state, lab.state.usage[ALICE], 3600.0)
    lab.send(FairShareSet(at=3600.0, half_life_s=1800.0, core_weight=0.5))
    assert used_s(lab.state, lab.state.usage[ALICE], 3600.0) == before_s
    assert lab.state.usage[BOB].rate == 4.0
    lab.end("a")
    lab.end("b")
    lab.tick(5400.0)
    assert used_s(lab.state, lab.state.usage[ALICE], 5400.0) == pytest.approx(before_s / 2)
    assert lab.state.usage[BOB].rate == 0.0


@pytest.mark.parametrize("half_life_s", [0.0, -1.0, float("inf"), float("nan")])
def test_a_half_life_is_a_time(half_life_s: float) -> None:
    with pytest.raises(IllegalEvent):
        Lab().send(FairShareSet(at=0.0, half_life_s=half_life_s, core_weight=0.0))


def test_twice_the_use_counts_as_jobs_that_take_twice_as_long() -> None:
    assert rank(10.0, 1) == rank(11.0, 0)
    assert rank(10.0, 2) > rank(11.0, 0) > rank(10.0, 0) == 10.0


@pytest.mark.parametrize(("score_of_wide", "first"), [(1.0, "wide"), (9.0, "narrow")])
def test_one_who_used_more_comes_first_where_the_job_is_far_likelier_done_soon(
    *, score_of_wide: float, first: str
) -> None:
    class Scored(Fifo):
        def score(self, _state: State, _tier: int, gpus: int, /) -> float:
            return score_of_wide if gpus > 1 else 0.0

    lab = Lab(gpus=2, policy=Scored(), settings=Settings(bound_s=None, ageing_s=None))
    lab.submit("used", gpus=2)
    lab.start("used")
    lab.tick(3 * 3600.0)
    lab.submit("narrow", gpus=1)
    lab.submit("wide", BOB, gpus=2)
    assert share(lab.state, ALICE) == 3
    assert next(iter(in_order(lab.state, lab.scheduler.standings))).id == first
    assert jobs_of(lab.end("used")) == [first]


@pytest.mark.parametrize(("score_of_wide", "victims"), [(1.0, []), (9.0, ["wide"])])
def test_a_job_gives_way_to_one_of_an_owner_who_used_more_only_where_the_index_outweighs_that(
    *, score_of_wide: float, victims: list[str]
) -> None:
    class Scored(Gittins):
        def score(self, _state: State, _tier: int, gpus: int, /) -> float:
            return score_of_wide if gpus > 1 else 0.0

    lab = Lab(gpus=2, policy=Scored(), settings=Settings(bound_s=None, ageing_s=None))
    lab.submit("used", gpus=2)
    lab.start("used")
    lab.tick(3 * 3600.0)
    lab.submit("wide", BOB, gpus=2, preemption=(Preemption.CHECKPOINT,))
    lab.end("used")
    lab.start("wide")
    lab.tick(lab.at + 120.0)
    assert jobs_of(lab.submit("narrow", gpus=1)) == victims
