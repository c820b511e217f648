"""Shares, slices, models: parts of GPUs and GPUs that are asked for by name."""

import pytest

from tests.core.builders import ALICE, BOB, GIB, HIGH, Lab, gpu, jobs_of, seen
from workbench.core.events import HostSeen
from workbench.core.model import DeviceStatus, Preemption, Units
from workbench.core.placement import Pool, shape_of
from workbench.core.state import HALF_LIFE_S, Sharer

PROFILE = "1g.10gb"


def share(gib: int) -> dict[str, int]:
    return {"gpus": 1, "share_bytes": gib * GIB}


def split_lab(*, slices: int = 3, gpus: int = 1) -> Lab:
    """GPU 0 is split, the others are whole."""
    lab = Lab(gpus=gpus)
    for number in range(10, 10 + slices):
        lab.send(seen(0, number, memory_gib=10, mig=PROFILE, parent=gpu(0)))
    return lab


# --- shares --------------------------------------------------------------------------------


def test_shares_are_packed_on_the_fullest_gpu_that_has_room() -> None:
    lab = Lab(gpus=2)
    for job, gib in (("a", 40), ("b", 50), ("c", 20), ("d", 16), ("e", 1)):
        lab.submit(job, **share(gib))
    assert [lab.gpus_of(job) for job in "abcde"] == [[gpu(n)] for n in (0, 1, 1, 0, 1)]
    assert lab.state.sharers == {
        gpu(0): (Sharer("L0", 40 * GIB), Sharer("L3", 16 * GIB)),
        gpu(1): (Sharer("L1", 50 * GIB), Sharer("L2", 20 * GIB), Sharer("L4", GIB)),
    }
    assert lab.state.holders == {}


def test_shares_leave_a_margin_of_each_gpu() -> None:
    lab = Lab(gpus=1)
    lab.submit("a", **share(70))
    assert lab.submit("b", **share(7)) == []
    assert jobs_of(lab.submit("c", **share(6))) == ["c"]


def test_a_share_is_never_beside_an_exclusive_lease() -> None:
    lab = Lab(gpus=1)
    lab.submit("a", gpus=1)
    assert lab.submit("b", **share(1)) == []
    assert lab.submit("c", gpus=1) == []
    lab.submit("d", **share(2))
    assert jobs_of(lab.end("a")) == ["b", "d"]
    assert lab.end("b") == []
    assert jobs_of(lab.end("d")) == ["c"]


def test_a_share_opens_the_smallest_gpu_that_is_large_enough() -> None:
    lab = Lab()
    for number, memory_gib in enumerate([None, 80, 24, 40]):
        lab.send(seen(0, number, memory_gib=memory_gib))
    lab.submit("a", **share(23))
    assert lab.gpus_of("a") == [gpu(3)]


def test_a_gpu_of_unknown_memory_takes_no_share() -> None:
    lab = Lab(gpus=1)
    lab.send(seen(0, 1, memory_gib=None))
    lab.submit("a", **share(70))
    assert lab.submit("b", **share(70)) == []


def test_a_share_that_was_leased_before_its_gpu_shrank_is_given_back_soundly() -> None:
    lab = Lab(gpus=1)
    lab.submit("a", **share(70))
    lab.submit("b", **share(5))
    lab.send(seen(0, 0, memory_gib=40))
    lab.submit("c", gpus=1)
    lab.end("a")
    assert jobs_of(lab.submit("d", **share(33))) == ["d"]
    lab.end("d")
    assert jobs_of(lab.end("b")) == ["c"]


def test_shares_give_way_until_the_whole_gpu_is_free() -> None:
    lab = Lab(gpus=1)
    for job in ("a", "b"):
        lab.submit(job, **share(30), preemption=(Preemption.REQUEUE,))
        lab.start(job)
    lab.tick(100)
    assert sorted(jobs_of(lab.submit("c", BOB, gpus=1, priority=HIGH))) == ["a", "b"]
    assert lab.end("a") == []
    assert jobs_of(lab.end("b")) == ["c"]


def test_only_as_many_shares_give_way_as_a_share_needs() -> None:
    lab = Lab(gpus=1)
    for job in ("a", "b"):
        lab.submit(job, **share(30), preemption=(Preemption.REQUEUE,))
        lab.start(job)
    lab.tick(100)
    assert jobs_of(lab.submit("c", BOB, **share(40), priority=HIGH)) == ["b"]
    # Of the 16 GiB that are free, 10 are set apart for it.
    assert lab.submit("d", **share(7)) == []
    assert jobs_of(lab.submit("e", **share(6))) == ["e"]


def test_what_is_free_of_a_share_that_others_give_way_to_is_set_apart_at_once() -> None:
    lab = Lab(gpus=1, agents=(ALICE,))
    for job in ("a", "b"):
        lab.submit(job, **share(30), preemption=(Preemption.REQUEUE,))
        lab.start(job)
    lab.tick(100)
    lab.submit("c", BOB, **share(40), priority=HIGH)
    lab.submit("d", BOB, **share(7))
    lab.submit("e", BOB, **share(6))
    assert jobs_of(lab.connect(BOB)) == ["b", "e"]


def test_no_share_starts_on_a_gpu_that_shares_leave_for_a_whole_lease() -> None:
    lab = Lab(gpus=1, agents=(ALICE,))
    for job in ("a", "b"):
        lab.submit(job, **share(30), preemption=(Preemption.REQUEUE,))
        lab.start(job)
    lab.tick(100)
    lab.submit("c", BOB, gpus=1, priority=HIGH)
    lab.submit("d", BOB, **share(10))
    assert sorted(jobs_of(lab.connect(BOB))) == ["a", "b"]


def test_a_share_gets_the_cores_of_those_who_give_way_on_a_gpu_that_has_room() -> None:
    lab = Lab(gpus=1, cores=4)
    lab.submit("a", **share(30))
    lab.submit("b", cores=3, preemption=(Preemption.REQUEUE,))
    lab.start("b")
    lab.tick(100)
    assert jobs_of(lab.submit("c", BOB, **share(40), priority=HIGH)) == ["b"]


def test_a_share_counts_as_its_part_of_the_gpu_in_fair_share() -> None:
    lab = Lab(gpus=1)
    lab.submit("a", **share(20))
    assert lab.state.usage[ALICE].rate == pytest.approx(0.25)
    lab.send(seen(0, 0, memory_gib=40))
    assert lab.state.usage[ALICE].rate == pytest.approx(0.5)
    lab.tick(HALF_LIFE_S)
    lab.end("a")
    assert lab.state.usage[ALICE].rate == 0


def test_a_copy_of_a_pool_shares_apart() -> None:
    pool = Pool.of(Lab(gpus=1).state)
    units = Units(gpus=(gpu(0),), cores=1, share_bytes=GIB)
    pool.copy().take(units)
    assert pool.free_gpus == 1
    pool.take(units)
    pool.copy().give_back(units)
    assert pool.free_gpus == 0


# --- slices --------------------------------------------------------------------------------


def test_slices_go_to_those_who_ask_for_their_profile_and_gpus_to_those_who_do_not() -> None:
    lab = split_lab(gpus=2)
    lab.send(seen(0, 20, memory_gib=40, mig="3g.40gb", parent=gpu(0)))
    lab.submit("a", gpus=2, mig=PROFILE)
    lab.submit("b", gpus=1)
    lab.submit("c", gpus=1, mig="3g.40gb")
    assert [lab.gpus_of(job) for job in "abc"] == [[gpu(10), gpu(11)], [gpu(1)], [gpu(20)]]
    assert lab.submit("d", gpus=1, gpu_memory_bytes=5 * GIB) == []
    assert lab.submit("e", gpus=2, mig=PROFILE) == []
    assert jobs_of(lab.submit("f", gpus=1, mig=PROFILE)) == ["f"]


def test_a_gpu_with_slices_is_leased_as_a_whole_once_they_are_gone_and_given_back() -> None:
    lab = split_lab(slices=2, gpus=2)
    lab.submit("a", gpus=1, mig=PROFILE)
    lab.submit("b", gpus=1)
    lab.lose(10, missing=True)
    lab.lose(11, missing=True)
    assert lab.submit("c", gpus=1) == []
    assert jobs_of(lab.end("a")) == ["c"]
    assert lab.gpus_of("c") == [gpu(0)]


def test_a_lost_slice_still_stands_in_the_way_of_its_gpu() -> None:
    lab = split_lab(slices=1, gpus=2)
    lab.submit("a", gpus=1)
    lab.lose(10)
    assert lab.submit("b", gpus=1) == []
    assert jobs_of(lab.lose(10, missing=True)) == ["b"]


@pytest.mark.parametrize("request_", [{"gpus": 1}, share(8)])
def test_slices_of_a_gpu_that_is_leased_as_a_whole_wait_for_its_end(
    request_: dict[str, int],
) -> None:
    lab = Lab(gpus=1)
    lab.submit("a", **request_)
    lab.send(seen(0, 10, memory_gib=10, mig=PROFILE, parent=gpu(0)))
    assert lab.submit("b", gpus=1, mig=PROFILE) == []
    assert jobs_of(lab.end("a")) == ["b"]


def test_slices_are_not_shared() -> None:
    lab = split_lab(gpus=2)
    lab.submit("a", **share(5))
    assert lab.gpus_of("a") == [gpu(1)]


def test_a_slice_counts_as_its_part_of_the_gpu_in_fair_share() -> None:
    lab = split_lab()
    lab.submit("a", gpus=2, mig=PROFILE)
    assert lab.state.usage[ALICE].rate == pytest.approx(0.25)
    lab.send(seen(0, 0, memory_gib=40))
    assert lab.state.usage[ALICE].rate == pytest.approx(0.5)
    lab.send(seen(0, 30, memory_gib=10, mig=PROFILE))
    lab.submit("b", BOB, gpus=2, mig=PROFILE)
    assert lab.state.usage[BOB].rate == pytest.approx(1.25), "that of an unknown GPU counts whole"


# --- models --------------------------------------------------------------------------------


def models_lab() -> Lab:
    lab = Lab()
    for number, model in enumerate(["NVIDIA A100-SXM4", "RTX 3090", "RTX 3090", "RTX 3090"]):
        lab.send(seen(0, number, model=model))
    return lab


def test_the_preferred_model_is_tried_first_and_a_gang_is_of_one() -> None:
    lab = models_lab()
    lab.submit("a", gpus=1, models=("a100", "3090"))
    lab.submit("b", gpus=1, models=("a100", "3090"))
    assert [lab.gpus_of(job) for job in "ab"] == [[gpu(0)], [gpu(1)]]
    lab.end("a")
    lab.submit("c", gpus=2, models=("A100", "3090"))
    assert lab.gpus_of("c") == [gpu(2), gpu(3)]
    assert lab.submit("d", gpus=2, models=("A100", "rtx")) == []
    assert jobs_of(lab.submit("e", gpus=1)) == ["e"]


def test_a_gpu_is_named_by_the_beginning_of_its_uuid() -> None:
    lab = models_lab()
    lab.submit("a", gpus=1, models=("gpu-00000002",))
    assert lab.gpus_of("a") == [gpu(2)]
    assert lab.submit("b", gpus=1, models=("GPU-00000002",)) == []


def test_a_share_may_be_of_a_model() -> None:
    lab = models_lab()
    lab.submit("a", **share(8))
    lab.submit("b", **share(8), models=("RTX",))
    lab.submit("c", **share(8), models=("a100", "rtx"))
    assert [lab.gpus_of(job) for job in "abc"] == [[gpu(0)], [gpu(1)], [gpu(0)]]


def test_a_gang_of_a_model_larger_than_its_nodes_is_spread_over_them() -> None:
    """Nodes are as large as what they have of it: else it would wait for one that is not there."""
    lab = Lab()
    for number in range(8):
        model = "A100" if number in {0, 1, 4, 5} else "T4"
        lab.send(seen(0, number, node=f"node{number // 4}", model=model))
    lab.submit("a", gpus=4, models=("a100",))
    assert lab.gpus_of("a") == [gpu(number) for number in (0, 1, 4, 5)]


def test_what_means_nothing_without_a_gpu_is_left_out_of_a_shape() -> None:
    lab = Lab()
    lab.submit("a", models=("a100",))
    assert shape_of(lab.job("a").request).models == ()
    assert lab.state.devices == {}


def test_a_share_on_a_lost_gpu_keeps_its_part_until_it_ends() -> None:
    lab = Lab(gpus=1)
    lab.submit("a", **share(70))
    lab.lose(0)
    lab.send(HostSeen(at=0, cores=8, memory_bytes=64 * GIB))
    assert lab.submit("b", **share(7)) == []
    lab.send(seen(0, 0))
    assert lab.state.devices[gpu(0)].status is DeviceStatus.AVAILABLE
    assert lab.job("b").grant is None
    assert jobs_of(lab.end("a")) == ["b"]
