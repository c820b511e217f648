from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.simulate.bars import MOST_USERS, OTHERS, SEVERAL, UNNAMED, Lanes, by_device, by_user
from workbench.simulate.metrics import Record, Stint
from workbench.simulate.workload import SimJob


def record(id_: str, start_s: float, end_s: float, *gpus: str, user: str = "ann") -> Record:
    return Record(
        job=SimJob(id=id_, submit_s=0.0, service_s=end_s - start_s, gpus=len(gpus), user=user),
        first_start_s=start_s,
        end_s=end_s,
        stints=(Stint(start_s=start_s, end_s=end_s, gpus=gpus),),
    )


def overlaps(lanes: Lanes) -> list[str]:
    rows = defaultdict(list)
    for bar in lanes.bars:
        rows[bar.row].append(bar)
    found = []
    for bars in rows.values():
        bars.sort(key=lambda bar: (bar.start_s, bar.end_s))
        found += [b.job for a, b in pairwise(bars) if b.start_s < a.end_s]
    return found


def test_each_gpu_has_a_row_and_a_gang_a_bar_on_each_of_its_gpus() -> None:
    lanes = by_device([record("1", 0, 9, "gpu10", "gpu9"), record("2", 9, 12, "gpu9", user="")])
    assert lanes.labels == {0: "gpu9", 1: "gpu10"}
    assert [(bar.row, bar.job, bar.user) for bar in lanes.bars] == [
        (0, "1", "ann"),
        (0, "2", UNNAMED),
        (1, "1", "ann"),
    ]
    assert lanes.bars[0].gpus == "2 (gpu10, gpu9)"
    assert (lanes.rows, lanes.merged_below_s) == (2, 0.0)


def test_a_user_has_as_many_rows_as_jobs_at_a_time_and_one_label_in_their_middle() -> None:
    lanes = by_user(
        [
            record("1", 0, 9, "a"),
            record("2", 1, 5, "b"),
            record("3", 5, 8, "b"),
            record("4", 0, 1, "c", user="bob"),
        ]
    )
    assert lanes.labels == {0.5: "ann", 2: "bob"}
    assert [(bar.row, bar.job) for bar in lanes.bars] == [(0, "1"), (1, "2"), (1, "3"), (2, "4")]


def test_users_beyond_what_fits_on_a_screen_share_rows() -> None:
    records = [record(str(n), 0, 100 - n, "a", user=f"u{n}") for n in range(MOST_USERS + 2)]
    lanes = by_user(records)
    assert list(lanes.labels.values())[-1] == OTHERS
    assert len(lanes.labels) == MOST_USERS + 1
    last = {bar.user for bar in lanes.bars if bar.row >= MOST_USERS}
    assert last == {f"u{MOST_USERS}", f"u{MOST_USERS + 1}"}


def test_short_neighbours_become_one_bar_that_says_so_and_long_ones_stay() -> None:
    records = [record(f"s{n}", n, n + 0.5, "a", user=f"u{n % 2}") for n in range(20)]
    records += [record("long", 50, 99_950, "a"), record("late", 100_000, 100_000.5, "a")]
    lanes = by_device(records, most=5)
    assert [(bar.job, bar.user, bar.start_s, bar.end_s) for bar in lanes.bars] == [
        ("20 short stints", SEVERAL, 0, 19.5),
        ("long", "ann", 50, 99_950),
        ("late", "ann", 100_000, 100_000.5),
    ]
    assert lanes.bars[0].wait_s == 19
    assert lanes.merged_below_s == pytest.approx(100_000.5 / 2000)


def test_short_stints_far_apart_stay_apart() -> None:
    records = [record(str(n), at, at + 1, "a") for n, at in enumerate((0, 5_000, 9_999))]
    records += [record(f"b{n}", n / 2, n / 2 + 0.5, "b") for n in range(10)]
    lanes = by_device(records, most=10)
    assert [bar.job for bar in lanes.bars] == ["0", "1", "2", "10 short stints"]


STINTS = st.tuples(
    st.floats(0, 1e6), st.floats(0, 1e4), st.integers(0, 3), st.sampled_from(["ann", "bob", ""])
)


@given(st.lists(STINTS, min_size=1, max_size=60), st.integers(1, 40))
def test_rows_never_overlap_however_few_bars_may_be_drawn(
    stints: list[tuple[float, float, int, str]], most: int
) -> None:
    free = [0.0] * 4
    records = []
    for number, (start_s, took_s, gpu, user) in enumerate(stints):
        begin_s = max(start_s, free[gpu])
        free[gpu] = begin_s + took_s
        records.append(record(str(number), begin_s, free[gpu], f"gpu{gpu}", user=user))
    for lanes in (by_device(records, most=most), by_user(records, most=most)):
        assert overlaps(lanes) == []
        assert len(lanes.bars) <= max(most, lanes.rows)
        ends = (min(r.first_start_s for r in records), max(r.end_s for r in records))
        assert (min(b.start_s for b in lanes.bars), max(b.end_s for b in lanes.bars)) == ends
