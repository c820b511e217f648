"""How reasons and refusals spell amounts for people."""

from __future__ import annotations

from workbench.core.model import DeviceId, JobId, Seconds

_GIB = 1 << 30
_MIB = 1 << 20
_MINUTE_S = 60.0
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


def spell_seconds(span_s: Seconds) -> str:
    """Spells a span of time.

    Args:
        span_s: The span in seconds.

    Returns:
        Its two largest units, such as `1 h 30 min` or `2.5 s`.
    """
    if span_s < _MINUTE_S:
        return f"{span_s:.3g} s"
    minutes = round(span_s / _MINUTE_S)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min")]
    first = next(number for number, (amount, _) in enumerate(parts) if amount)
    return " ".join(f"{amount} {unit}" for amount, unit in parts[first : first + 2] if amount)


def spell_gpus(number: int, mig: str) -> str:
    """Spells a number of GPUs or slices.

    Args:
        number: How many.
        mig: The profile of the slices; empty for GPUs.

    Returns:
        `1 GPU`, `2 slices 1g.10gb`.
    """
    return f"{count(number, 'slice')} {mig}" if mig else count(number, "GPU")


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


def spell_span(span_s: Seconds) -> str:
    """Spells a span of time, rounded down to a unit of which there is at least one.

    Args:
        span_s: Seconds, at least 0.

    Returns:
        `40 seconds`, `10 minutes`, `3 hours`.
    """
    for unit_s, noun in ((3600.0, "hour"), (60.0, "minute")):
        if span_s >= unit_s:
            return count(int(span_s // unit_s), noun)
    return count(int(span_s), "second")
