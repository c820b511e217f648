"""How reasons and refusals spell amounts for people."""

from __future__ import annotations

from workbench.core.model import DeviceId, JobId, Seconds

_GIB = 1 << 30
_MIB = 1 << 20
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


def count(number: int, noun: str) -> str:
    """Spells a number of things.

    Args:
        number: How many.
        noun: The singular.

    Returns:
        `1 core`, `2 cores`.
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def spell_span(span_s: Seconds) -> str:
    """Spells how long something is or how far away, by its two largest units.

    Args:
        span_s: The span.

    Returns:
        Such as `3 d 2 h`, `1 h 20 min`, `45 s`; at least 0 s.
    """
    left = max(round(span_s), 0)
    parts = []
    for name, unit_s in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, left = divmod(left, unit_s)
        if number:
            parts.append(f"{number} {name}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


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
