"""Sizes and times as people write them."""

import pytest

from workbench.core.errors import UserError
from workbench.core.spelling import spell_seconds
from workbench.protocol.quantities import format_bytes, parse_bytes, parse_seconds


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("6GiB", 6 * 2**30),
        ("6 gib", 6 * 2**30),
        ("512MB", 512 * 10**6),
        ("1.5g", 3 * 2**29),
        ("2048B", 2048),
        ("1TiB", 2**40),
    ],
)
def test_a_size_is_read_in_every_usual_spelling(text: str, size_bytes: int) -> None:
    assert parse_bytes(text, "--memory") == size_bytes


@pytest.mark.parametrize(
    "text", ["banana", "-1GiB", "0", "GiB", "1 parsec", "", "1e9GB", "6GiB;ls"]
)
def test_what_is_not_a_size_is_refused_with_value_rule_and_next_step(text: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_bytes(text, "--memory")
    assert repr(text) in raised.value.message
    assert "GiB" in raised.value.message
    assert "--memory 8GiB" in raised.value.next_step


@pytest.mark.parametrize("text", ["8", " 8 ", "0.5", "1" * 60])
def test_a_number_without_a_unit_is_no_size(text: str) -> None:
    with pytest.raises(
        UserError, match="has no unit: a size is a positive number and a unit"
    ) as no:
        parse_bytes(text, "--memory")
    assert f"--memory {text.strip()[:40]}" in no.value.next_step


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20m", 1200), ("1h30m", 5400), ("90s", 90), ("2d", 172800), ("0.5h", 1800)],
)
def test_a_time_is_read_in_every_usual_spelling(text: str, seconds: float) -> None:
    assert parse_seconds(text, "--time") == seconds


@pytest.mark.parametrize("text", ["20", "m", "-5m", "0m", "five minutes", "1h 30m"])
def test_what_is_not_a_time_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a time"):
        parse_seconds(text, "--time")


def test_sizes_and_times_are_written_in_units_that_people_read() -> None:
    assert [format_bytes(size) for size in (0, 1023, 1536, 6 * 2**30)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "6 GiB",
    ]
    assert [spell_seconds(span) for span in (0, 2.5, 90, 5400, 7200, 90000)] == [
        "0 s",
        "2.5 s",
        "2 min",
        "1 h 30 min",
        "2 h",
        "1 d 1 h",
    ]
