"""How reasons and refusals spell amounts for people."""

from __future__ import annotations

from workbench.core.model import DeviceId, JobId, Seconds

_GIB = 1 << 30
_MIB = 1 << 20
_UNITS_FROM = 1.5
"""A span of fewer than so many of a unit is spelled in the next smaller one."""
_ID_SHOWN = 8
"""So much of a job's id the tables of jobs show."""


def spell_bytes(amount_bytes: int) -> str:
    """Spells an amount of memory, rounded down so that asking for what it says is never too much.

    Args:
        amount_bytes: The amount.

    Returns:
        A number with at most two decimals and its unit, such as `79.25 GiB`.
    """
    unit, name = (_GIB, "GiB") if amount_bytes >= _GIB else (_MIB, "MiB")
    if 0 < amount_bytes < _MIB:
        return count(amount_bytes, "byte")
    hundredths = amount_bytes * 100 // unit
    whole, part = divmod(hundredths, 100)
    decimals = f".{part:02}".rstrip("0").rstrip(".")
    return f"{whole}{decimals} {name}"


def spell_span(seconds: Seconds) -> str:
    """Spells about how long something takes.

    Args:
        seconds: At least 0.

    Returns:
        One rounded number with its unit, such as `40 s`, `15 min` or `2 h`.
    """
    for unit_s, name in ((3600.0, "h"), (60.0, "min")):
        if seconds >= _UNITS_FROM * unit_s:
            return f"{seconds / unit_s:.0f} {name}"
    return f"{seconds:.0f} s"


def count(number: int, noun: str) -> str:
    """Spells a number of things.

    Args:
        number: How many.
        noun: The singular.

    Returns:
        `1 core`, `2 cores`.
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def short_device(device: DeviceId) -> str:
    """Shortens a UUID to what people tell GPUs apart by.

    Args:
        device: The UUID.

    Returns:
        Its first two groups, such as `GPU-9b2f41c0`.
    """
    return "-".join(device.split("-")[:2])


def short_job(job: JobId) -> str:
    """Names a job as the tables of jobs do.

    Args:
        job: Its id.

    Returns:
        The word and the beginning of the id, such as `job 3f2a9c01`.
    """
    return f"job {job[:_ID_SHOWN]}"
