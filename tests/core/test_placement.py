import pytest

from tests.core.builders import ALICE, GIB, Lab, gpu, seen
from workbench.core.events import HostSeen
from workbench.core.model import Request, Units
from workbench.core.placement import Free, Shape, place


def test_the_smallest_gpu_that_is_large_enough_is_chosen_in_a_stable_order() -> None:
    lab = Lab()
    for number, memory_gib in enumerate([80, None, 24, 40, 40]):
        lab.send(seen(0, number, memory_gib=memory_gib))
    free = Free.of(lab.state)
    assert [device.id for device in free.gpus] == [gpu(2), gpu(3), gpu(4), gpu(0), gpu(1)]
    chosen = place(free, Shape(gpus=2, gpu_memory_bytes=30 * GIB, cores=1, memory_bytes=0))
    assert chosen == Units(gpus=(gpu(3), gpu(4)), cores=1)


def test_a_gpu_of_unknown_memory_serves_only_those_who_ask_for_none() -> None:
    lab = Lab()
    lab.send(seen(0, 0, memory_gib=None))
    free = Free.of(lab.state)
    assert place(free, Shape(gpus=1, gpu_memory_bytes=1, cores=1, memory_bytes=0)) is None
    assert place(free, Shape(gpus=1, gpu_memory_bytes=0, cores=1, memory_bytes=0)) is not None


def test_gpu_memory_means_nothing_without_a_gpu() -> None:
    assert Shape.of(Request(gpu_memory_bytes=GIB)) == Shape.of(Request())


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
    assert Free.of(lab.state) == Free(gpus=[], cores=0, memory_bytes=0)


@pytest.mark.parametrize("memory_bytes", [0, GIB])
def test_on_a_host_that_shrank_only_a_job_without_memory_of_its_own_fits(memory_bytes: int) -> None:
    lab = Lab(memory_gib=8)
    lab.submit("a", memory_bytes=8 * GIB)
    lab.send(HostSeen(at=0, cores=16, memory_bytes=4 * GIB))
    granted = lab.submit("b", ALICE, memory_bytes=memory_bytes or None)
    assert len(granted) == (0 if memory_bytes else 1)


def test_what_is_given_back_is_handed_out_in_the_old_order() -> None:
    lab = Lab(gpus=3)
    free = Free.of(lab.state)
    usable = list(free.gpus)
    units = Units(gpus=(gpu(0),), cores=4, memory_bytes=GIB)
    free.take(units)
    free.give_back(units, usable)
    assert free == Free.of(lab.state)
    free.take(units)
    free.give_back(units, usable[1:])
    assert [device.id for device in free.gpus] == [gpu(1), gpu(2)]
