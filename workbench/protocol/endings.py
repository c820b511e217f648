"""How a job ended, as ended.json says it."""

from __future__ import annotations

from typing import Any

from workbench.protocol.messages import LeaseEnding


def ending_from(record: dict[str, Any]) -> LeaseEnding:
    """Return the ending in a record of ended.json."""
    return LeaseEnding(outcome=record["outcome"], detail=record.get("detail", ""))
