"""Marks in a stream that tell which variable an object was met through first."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """Stands before a variable's value; what is numbered from it on was met through that name."""

    name: str


class Labels:
    """Looks up names by number.

    Args:
        objects: The objects by number, labels among them.
    """

    def __init__(self, objects: Sequence[Any]) -> None:
        found = [(number, one.name) for number, one in enumerate(objects) if type(one) is Label]
        self._numbers = [number for number, _ in found]
        self._names = [name for _, name in found]

    def name_of(self, number: int) -> str | None:
        """Returns the name through which an object was met first; None for none."""
        place = bisect.bisect_right(self._numbers, number) - 1
        return self._names[place] if place >= 0 else None
