"""Sizes and times as people write them."""

from __future__ import annotations

import re
from typing import Final

from workbench.core.errors import UserError
from workbench.core.spelling import spell_seconds

_BYTES: Final = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
    "k": 2**10,
    "m": 2**20,
    "g": 2**30,
    "t": 2**40,
}
_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z]*)", re.IGNORECASE)
_SPAN: Final = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+", re.IGNORECASE)
_SHOWN_CHARACTERS: Final = 40
_MOST_BYTES: Final = 2**60
_MOST_SECONDS: Final = 10 * 365 * 86400.0
_MOST_UNITS: Final = 2**20
"""More than any host has, and little enough for every format that carries such numbers."""
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd])", re.IGNORECASE)


def parse_bytes(text: str, option: str) -> int:
    """Return the bytes in `text`, such as `6GiB`, `512 MB` or `2g` (binary, as Slurm reads it).

    Args:
        text: As typed.
        option: What the user typed it for, to name in the error.

    Raises:
        UserError: It is not a positive size, or more than any host has.
    """
    match = _SIZE.fullmatch(text.strip())
    factor = _BYTES.get(match["unit"].lower()) if match else None
    size = float(match["number"]) * factor if match and factor else 0.0
    if size >= _MOST_BYTES:
        raise UserError(
            f"{option} {_short(text)!r} is more than any host has",
            next_step=f"Write for example {option} 8GiB",
        )
    if match and not match["unit"] and float(match["number"]):
        raise UserError(
            f"{option} {_short(text)!r} has no unit: a size is a positive number and a unit, B, "
            "MB, MiB, GB or GiB",
            next_step=f"Write for example {option} {_short(match['number'])}GiB",
        )
    if size < 1:
        raise UserError(
            f"{option} {_short(text)!r} is not a size: a positive number and a unit, B, MB, MiB, "
            "GB or GiB",
            next_step=f"Write for example {option} 8GiB",
        )
    return int(size)


def parse_seconds(text: str, option: str) -> float:
    """Return the seconds in `text`, such as `20m`, `1h30m`, `90s` or `2d`.

    Raises:
        UserError: It is not a positive time, or longer than 10 years.
    """
    spelt = text.strip()
    seconds = (
        sum(float(number) * _SECONDS[unit.lower()] for number, unit in _PART.findall(spelt))
        if _SPAN.fullmatch(spelt)
        else 0.0
    )
    if seconds > _MOST_SECONDS:
        raise UserError(
            f"{option} {_short(text)!r} is more than 10 years",
            next_step=f"Leave {option} out for no limit",
        )
    if seconds <= 0:
        raise UserError(
            f"{option} {_short(text)!r} is not a time: a positive number and a unit, s, m, h or d",
            next_step=f"Write for example {option} 20m or {option} 1h30m",
        )
    return seconds


def check_count(number: int, option: str, *, least: int, what: str) -> None:
    """Refuse a number of units that no host can give.

    Args:
        number: As typed.
        option: What the user typed it for, to name in the error.
        least: The smallest that makes sense.
        what: What is counted, such as `whole GPUs`.

    Raises:
        UserError: It is below `least`, or more than any host has.
    """
    if number < least:
        raise UserError(
            f"{option} {_short(str(number))} is below {least}",
            next_step=f"Give the number of {what}, at least {least}",
        )
    if number > _MOST_UNITS:
        raise UserError(
            f"{option} {_short(str(number))} is more than any host has",
            next_step=f"Give the number of {what}",
        )


def _short(text: str) -> str:
    """Return what was typed, cut where it would fill the screen."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def format_bytes(size_bytes: float) -> str:
    """Return a size in the largest binary unit that keeps it above 1, such as `1.5 GiB`."""
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.3g} {unit}"
    return f"{size_bytes:.0f} B"


format_seconds: Final = spell_seconds
"""Spans of time read alike in the core's reasons and in front-ends."""
