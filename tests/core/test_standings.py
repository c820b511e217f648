from tests.core.builders import ALICE, BOB, NORMAL, Lab, jobs_of
from workbench.core.job import Job
from workbench.core.policy import Ordering
from workbench.core.settings import Settings
from workbench.core.standings import in_order
from workbench.core.state import State


class LargestFirst(Ordering):
    name = "largest first"

    def key(self, _state: State, job: Job, /) -> float:
        return -100.0 * job.request.cores - (job.request.time_limit_s or 0)


def waiting(lab: Lab) -> list[str]:
    return [job.id for job in in_order(lab.state, lab.scheduler.standings)]


def test_a_policy_orders_within_and_across_shapes_and_owners() -> None:
    lab = Lab(cores=4, policy=LargestFirst())
    lab.submit("first", cores=4)
    lab.submit("a", ALICE, cores=1)
    lab.submit("b", ALICE, cores=1, time_limit_s=5)
    lab.submit("c", BOB, cores=2)
    lab.submit("d", BOB, cores=1)
    assert waiting(lab) == ["c", "b", "a", "d"]
    assert jobs_of(lab.end("first")) == ["c", "b", "a"]


def test_a_place_is_forgotten_with_its_last_job() -> None:
    lab = Lab(cores=1)
    for job in ("first", "a", "b"):
        lab.submit(job)
    places = lab.scheduler.standings.waiting
    assert sum(map(len, places)) == 1
    lab.cancel("a")
    assert sum(map(len, places)) == 1
    lab.cancel("b")
    assert sum(map(len, places)) == 0


def test_ageing_lifts_a_waiting_job_by_one_class() -> None:
    lab = Lab(cores=1, settings=Settings(ageing_s=100.0, bound_s=None))
    lab.submit("first")
    lab.submit("low", priority="low")
    lab.tick(50.0)
    lab.submit("normal", priority=NORMAL)
    assert waiting(lab) == ["normal", "low"]
    assert lab.scheduler.next_wakeup() == 100.0
    lab.tick(100.0)
    assert waiting(lab) == ["low", "normal"]


def test_an_overdue_job_comes_before_every_class() -> None:
    lab = Lab(cores=1, settings=Settings(ageing_s=None, bound_s=100.0))
    lab.submit("first")
    lab.submit("low", priority="low")
    lab.tick(50.0)
    lab.submit("high", priority="high")
    assert waiting(lab) == ["high", "low"]
    lab.tick(lab.scheduler.next_wakeup() or 0.0)
    assert lab.at == 100.0
    assert waiting(lab) == ["low", "high"]
