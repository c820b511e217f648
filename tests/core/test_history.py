import pytest

from workbench.core.history import EDGES_S, LAST_SCORE, LEVELS, History, level_of, size_class


def scores(history: History, size: int = 1) -> list[float]:
    return [history.score(size, level) for level in range(LEVELS)]


def test_levels_begin_at_their_edges() -> None:
    assert [level_of(edge) for edge in EDGES_S] == [1, 2, 3, 4, 5]
    assert [level_of(edge - 0.01) for edge in EDGES_S] == [0, 1, 2, 3, 4]


def test_gangs_are_grouped_by_doublings() -> None:
    assert [size_class(gpus) for gpus in (0, 1, 2, 3, 4, 7, 8)] == [0, 1, 2, 2, 3, 3, 4]


def test_before_anything_was_seen_who_has_run_least_comes_first() -> None:
    known = scores(History())
    assert known == sorted(known)
    assert len(set(known)) == LEVELS
    assert known[-1] == LAST_SCORE


def test_a_level_that_sees_many_endings_comes_before_one_that_sees_none() -> None:
    history = History()
    for _ in range(40):
        history.observe(1, 0, EDGES_S[0], has_ended=False)
        history.observe(1, 1, 60.0, has_ended=True)
    known = scores(history)
    assert known[1] < known[0]
    assert known[1] == pytest.approx(5.9, abs=0.2)  # log2 of about 60 s


def test_sizes_of_which_little_was_seen_follow_the_others_once_they_are_looked_at() -> None:
    history = History()
    for _ in range(40):
        history.observe(1, 0, 10.0, has_ended=True)
    before = history.score(4, 0)
    history.observe(4, 0, 10.0, has_ended=True)
    assert history.score(4, 0) < before
    assert history.score(4, 0) == pytest.approx(history.score(1, 0), abs=1.0)
