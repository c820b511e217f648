import pytest

from tests.core.builders import Lab, gpu, seen
from workbench.core.gangs import on_one_node, over_nodes
from workbench.core.model import Shape, Units
from workbench.core.placement import Pool

ISLANDS = [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_gang_that_fits_in_one_island_gets_the_fullest_with_room() -> None:
    assert on_one_node([[0, 1, 2, 3, 5, 6]], 2, ISLANDS) == [5, 6]
    assert on_one_node([[0, 1, 2, 3, 5, 6]], 3, ISLANDS) == [0, 1, 2]


def test_one_gpu_comes_from_the_island_with_the_fewest_free() -> None:
    assert on_one_node([[0, 1, 2, 7]], 1, ISLANDS) == [7]


def test_a_gang_larger_than_an_island_is_cut_as_seldom_as_can_be() -> None:
    islands = [0, 0, 1, 1, 1, 2, 2, 2, 2]
    assert on_one_node([[0, 1, 2, 3, 4, 5, 6, 7, 8]], 6, islands) == [5, 6, 7, 8, 0, 1]
    assert on_one_node([[0, 2, 5]], 3, islands) == [0, 2, 5]


def test_a_node_with_a_whole_island_is_better_than_a_fuller_one_without() -> None:
    islands = [0, 0, 1, 1, 2, 2, 2, 2]
    assert on_one_node([[0, 2], [4, 5, 6, 7]], 2, islands) == [4, 5]


def test_the_fullest_node_comes_before_the_fullest_island() -> None:
    assert on_one_node([[0, 1, 2, 3], [4, 5, 6]], 2, [0, 0, 1, 1, 2, 2, 2]) == [4, 5]


def test_where_no_node_has_room_there_is_none() -> None:
    assert on_one_node([[0, 1], [4]], 3, ISLANDS) is None
    assert on_one_node([[0, 1], [4]], 3, None) is None
    assert over_nodes([[0, 1, 2], [4, 5, 6, 7]], 8, [4, 4], ISLANDS) is None


def test_the_rest_of_a_gang_of_several_nodes_stays_in_one_island() -> None:
    islands = [0, 0, 0, 0, 1, 1, 2, 2]
    assert over_nodes([[0, 1, 2, 3], [4, 6, 7]], 6, [4, 4], islands) == [0, 1, 2, 3, 6, 7]
    assert over_nodes([[0, 1, 2, 3], [4, 6, 7]], 4, [4, 4], islands) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("islands", "chosen"),
    [(("a", "b", "a", "b"), [gpu(1), gpu(3)]), (("", "", "", ""), [gpu(1), gpu(2)])],
)
def test_islands_are_what_the_driver_says_of_them(
    islands: tuple[str, ...], chosen: list[str]
) -> None:
    lab = Lab()
    for number, island in enumerate(islands):
        lab.send(seen(0, number, island=island))
    pool = Pool.of(lab.state)
    pool.take(Units(gpus=(gpu(0),)))
    units = pool.place(Shape(gpus=2, gpu_memory_bytes=0, cores=1, memory_bytes=0))
    assert units is not None
    assert list(units.gpus) == chosen


def test_islands_of_one_name_on_two_nodes_are_two() -> None:
    lab = Lab()
    for number in range(4):
        lab.send(seen(0, number, node=f"node{number // 3}", island="nvlink0"))
    lab.submit("a", gpus=1)
    lab.submit("b", gpus=2)
    assert [lab.gpus_of(job) for job in "ab"] == [[gpu(3)], [gpu(0), gpu(1)]]
