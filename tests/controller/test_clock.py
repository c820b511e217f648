from __future__ import annotations

import time

from workbench.controller.clock import HostTime, LabClock, host_time, open_clock


class Rows(dict[str, str]):
    """The journal's rows, without a journal."""

    def get_meta(self, key: str) -> str | None:
        return self.get(key)

    def set_meta(self, key: str, value: str) -> None:
        self[key] = value


class Boot:
    """CLOCK_BOOTTIME as a test sets it."""

    def __init__(self, boot_s: float) -> None:
        self.boot_s = boot_s

    def __call__(self) -> float:
        return self.boot_s


def at(wall_s: float, boot_s: float, boot_id: str = "one") -> HostTime:
    return HostTime(wall_s=wall_s, boot_s=boot_s, boot_id=boot_id)


def reading(clock: LabClock, boot_s: float) -> float:
    clock._boot_s = Boot(boot_s)
    return clock.now()


def test_it_begins_at_wall_time_and_advances_with_the_boot_clock() -> None:
    clock, was_booted = open_clock(Rows(), last_at=0.0, host=at(1000.0, 5.0))
    assert not was_booted
    assert reading(clock, 5.0) == 1000.0
    assert reading(clock, 65.0) == 1060.0


def test_a_jump_of_the_wall_clock_moves_nothing() -> None:
    rows = Rows()
    open_clock(rows, last_at=0.0, host=at(1000.0, 5.0))
    for wall_s in (-1e9, 0.0, 1e12):
        clock, was_booted = open_clock(rows, last_at=1001.0, host=at(wall_s, 7.0))
        assert not was_booted
        assert reading(clock, 7.0) == 1002.0


def test_it_never_goes_back() -> None:
    clock, _ = open_clock(Rows(), last_at=0.0, host=at(1000.0, 5.0))
    assert reading(clock, 10.0) == 1005.0
    assert reading(clock, 3.0) == 1005.0
    rows = Rows()
    open_clock(rows, last_at=0.0, host=at(1000.0, 5.0))
    clock, _ = open_clock(rows, last_at=5000.0, host=at(1000.0, 6.0))
    assert reading(clock, 6.0) == 5000.0


def test_after_a_boot_the_wall_clock_says_how_long_the_host_was_down() -> None:
    rows = Rows()
    open_clock(rows, last_at=0.0, host=at(1000.0, 5.0))
    clock, was_booted = open_clock(rows, last_at=1100.0, host=at(4600.0, 2.0, "two"))
    assert was_booted
    assert reading(clock, 2.0) == 4600.0
    clock, was_booted = open_clock(rows, last_at=4600.0, host=at(9999.0, 3.0, "two"))
    assert not was_booted
    assert reading(clock, 3.0) == 4601.0


def test_a_wall_clock_that_was_set_back_over_a_boot_does_not_take_the_lab_back() -> None:
    rows = Rows()
    open_clock(rows, last_at=0.0, host=at(1000.0, 5.0))
    clock, _ = open_clock(rows, last_at=1100.0, host=at(30.0, 2.0, "two"))
    assert reading(clock, 2.0) == 1100.0
    assert reading(clock, 12.0) == 1110.0


def test_a_time_is_shown_as_the_wall_clock_says_and_always_the_same() -> None:
    host = host_time()
    assert host.boot_id
    clock, _ = open_clock(Rows(), last_at=0.0, host=host)
    now = clock.now()
    shown = clock.unix_s(now)
    assert abs(shown - time.time()) < 0.5
    assert {clock.unix_s(now) for _ in range(100)} == {shown}
