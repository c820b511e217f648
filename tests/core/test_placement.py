import pytest

from tests.core.builders import ALICE, GIB, Lab, gpu, seen
from workbench.core.events import HostSeen
from workbench.core.model import Request, Shape, Units
from workbench.core.placement import Pool, shape_of


def test_the_smallest_gpu_that_is_large_enough_is_chosen_in_a_stable_order() -> None:
    lab = Lab()
    for number, memory_gib in enumerate([80, None, 24, 40, 40]):
        lab.send(seen(0, number, memory_gib=memory_gib))
    free = Pool.of(lab.state)
    assert chosen(free, asks(5)) == [gpu(2), gpu(3), gpu(4), gpu(0), gpu(1)]
    assert chosen(free, asks(2, gpu_memory_gib=30)) == [gpu(3), gpu(4)]


def test_a_gpu_of_unknown_memory_serves_only_those_who_ask_for_none() -> None:
    lab = Lab()
    lab.send(seen(0, 0, memory_gib=None))
    free = Pool.of(lab.state)
    assert free.place(Shape(gpus=1, gpu_memory_bytes=1, cores=1, memory_bytes=0)) is None
    assert free.place(Shape(gpus=1, gpu_memory_bytes=0, cores=1, memory_bytes=0)) is not None


def test_gpu_memory_means_nothing_without_a_gpu() -> None:
    assert shape_of(Request(gpu_memory_bytes=GIB)) == shape_of(Request())


def test_a_simulated_gpu_is_never_chosen_on_a_host_with_a_real_one() -> None:
    lab = Lab()
    lab.send(seen(0, 0, simulated=True))
    lab.send(seen(0, 1))
    lab.submit("a", gpus=1)
    assert lab.gpus_of("a") == [gpu(1)]
    assert lab.submit("b", gpus=1) == []
    assert lab.lose(1) == []


def test_a_simulated_gpu_serves_while_every_real_one_is_missing() -> None:
    lab = Lab(gpus=1)
    lab.send(seen(0, 7, simulated=True))
    lab.lose(0, missing=True)
    lab.submit("a", gpus=1)
    assert lab.gpus_of("a") == [gpu(7)]


def test_nothing_is_placed_before_the_host_was_seen() -> None:
    lab = Lab(gpus=1)
    lab.state.host = None
    anything = Shape(gpus=0, gpu_memory_bytes=0, cores=1, memory_bytes=0)
    assert Pool.of(lab.state).place(anything) is None


@pytest.mark.parametrize("memory_bytes", [0, GIB])
def test_on_a_host_that_shrank_only_a_job_without_memory_of_its_own_fits(memory_bytes: int) -> None:
    lab = Lab(memory_gib=8)
    lab.submit("a", memory_bytes=8 * GIB)
    lab.send(HostSeen(at=0, cores=16, memory_bytes=4 * GIB))
    granted = lab.submit("b", ALICE, memory_bytes=memory_bytes or None)
    assert len(granted) == (0 if memory_bytes else 1)


def asks(gpus: int, gpu_memory_gib: int = 0) -> Shape:
    return Shape(gpus=gpus, gpu_memory_bytes=gpu_memory_gib * GIB, cores=1, memory_bytes=0)


def chosen(pool: Pool, shape: Shape) -> list[str] | None:
    units = pool.place(shape)
    return None if units is None else list(units.gpus)


def test_what_is_given_back_is_handed_out_in_the_old_order() -> None:
    lab = Lab(gpus=3)
    pool = Pool.of(lab.state)
    units = Units(gpus=(gpu(0),), cores=4, memory_bytes=GIB)
    pool.take(units)
    assert chosen(pool, asks(3)) is None
    pool.give_back(units)
    assert chosen(pool, asks(3)) == [gpu(0), gpu(1), gpu(2)]


def test_a_gpu_that_may_not_be_leased_any_more_does_not_come_back() -> None:
    lab = Lab(gpus=2)
    lab.submit("a", gpus=1)
    lab.lose(0)
    pool = Pool.of(lab.state)
    pool.give_back(Units(gpus=(gpu(0),), cores=1))
    assert chosen(pool, asks(1)) == [gpu(1)]
    assert chosen(pool, asks(2)) is None


def test_a_copy_changes_apart() -> None:
    pool = Pool.of(Lab(gpus=2).state)
    pool.copy().take(Units(gpus=(gpu(0),), cores=1))
    assert chosen(pool, asks(2)) == [gpu(0), gpu(1)]


def nodes(*sizes: int) -> Lab:
    lab = Lab()
    number = 0
    for node, size in enumerate(sizes):
        for _ in range(size):
            lab.send(seen(0, number, node=f"node{node}"))
            number += 1
    return lab


def test_a_gang_that_fits_on_one_node_is_not_spread() -> None:
    pool = Pool.of(nodes(4, 4).state)
    pool.take(Units(gpus=(gpu(0), gpu(4))))
    assert chosen(pool, asks(4)) is None
    assert chosen(pool, asks(3)) == [gpu(1), gpu(2), gpu(3)]


def test_the_fullest_node_with_room_is_filled_first() -> None:
    pool = Pool.of(nodes(4, 4, 4).state)
    pool.take(Units(gpus=(gpu(4), gpu(8), gpu(9))))
    assert chosen(pool, asks(1)) == [gpu(10)]
    assert chosen(pool, asks(3)) == [gpu(5), gpu(6), gpu(7)]


def test_a_gang_larger_than_a_node_gets_whole_nodes_and_the_rest_on_the_fullest() -> None:
    pool = Pool.of(nodes(4, 4, 4).state)
    pool.take(Units(gpus=(gpu(0), gpu(1))))
    assert chosen(pool, asks(6)) == [gpu(4), gpu(5), gpu(6), gpu(7), gpu(2), gpu(3)]
    assert chosen(pool, asks(10)) == [gpu(number) for number in (4, 5, 6, 7, 8, 9, 10, 11, 2, 3)]
    pool.take(Units(gpus=(gpu(4),)))
    assert chosen(pool, asks(8)) is None
