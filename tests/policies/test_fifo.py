from tests.core.builders import BOB, HIGH, Lab, jobs_of
from workbench.core.policy import Policy
from workbench.core.standings import in_order
from workbench.policies.fifo import Fifo


def test_it_is_a_policy() -> None:
    policy: Policy = Fifo()
    assert policy.name == "fifo"


def test_jobs_of_a_class_go_in_the_order_in_which_they_came_whoever_owns_them() -> None:
    lab = Lab(cores=2)
    lab.submit("first", cores=2)
    lab.submit("a", cores=2)
    lab.submit("b", BOB, cores=1)
    lab.submit("c", cores=2)
    lab.submit("d", BOB, cores=1, priority=HIGH)
    assert [job.id for job in in_order(lab.state, lab.scheduler.standings)] == ["d", "a", "b", "c"]
    assert jobs_of(lab.end("first")) == ["d", "b"]


def test_it_is_greedy() -> None:
    lab = Lab(cores=4)
    lab.submit("a", cores=2)
    lab.submit("b", cores=4)
    assert jobs_of(lab.submit("c", cores=2)) == ["c"]
