from tests.core.builders import ALICE, BOB, Lab, jobs_of
from workbench.core.model import PriorityClass
from workbench.core.policy import Key
from workbench.core.state import Job, State
from workbench.core.waiting import Queue, in_order


class LargestFirst:
    name = "largest first"

    def waiting_key(self, _state: State, job: Job, /) -> Key:
        return (-job.request.cores, -(job.request.time_limit_s or 0))


def test_a_policy_orders_within_and_across_shapes_and_owners() -> None:
    lab = Lab(cores=4, policy=LargestFirst())
    lab.submit("first", cores=4)
    lab.submit("a", ALICE, cores=1)
    lab.submit("b", ALICE, cores=1, time_limit_s=5)
    lab.submit("c", BOB, cores=2)
    lab.submit("d", BOB, cores=1)
    assert [job.id for job in in_order(lab.state, lab.policy)] == ["c", "b", "a", "d"]
    assert jobs_of(lab.end("first")) == ["c", "b", "a"]


def test_the_queue_forgets_a_bucket_with_its_last_job() -> None:
    lab = Lab(cores=1)
    for job in ("first", "a", "b"):
        lab.submit(job)
    queue = Queue.of(lab.state, lab.policy)
    (bucket,) = queue.buckets(PriorityClass.NORMAL)
    assert [turn.job for turn in bucket.turns] == ["a", "b"]
    lab.cancel("a")
    queue.follow(lab.state, lab.job("a"))
    assert [turn.job for turn in bucket.turns] == ["b"]
    lab.cancel("b")
    queue.follow(lab.state, lab.job("b"))
    assert list(queue.buckets(PriorityClass.NORMAL)) == []
