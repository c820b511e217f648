"""What a cell that may read any name can do without: names that cannot cross are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from workbench.boundary import CannotCross, CellError, Crossing, pack

_UNKNOWN: Final = re.compile(r"name '(\w+)' is not defined")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What crosses.

    Attributes:
        left_out: Names that the cell may read and that stay, with the reason.
    """

    crossing: Crossing
    left_out: Mapping[str, str] = field(default_factory=dict)


def pack_what_can_go(
    namespace: dict[str, Any],
    named: Iterable[str],
    others: Iterable[str],
    *,
    limit_bytes: int,
    attributes: Iterable[str] = (),
) -> Sent:
    """Pack what a cell names, and of the other names those that can cross.

    Args:
        namespace: The notebook's names.
        named: Names that stand in the cell; all of them have to cross.
        others: Names that it might read in a way that cannot be seen.
        limit_bytes: The most that may cross.
        attributes: What the cell calls things of modules.

    Raises:
        CannotCross: One of `named` cannot cross, or all of them are too large.
    """
    needed = list(named)
    left = [name for name in others if name not in needed]
    left_out: dict[str, str] = {}
    while True:
        try:
            crossing = pack(
                namespace, [*needed, *left], limit_bytes=limit_bytes, attributes=attributes
            )
        except CannotCross as error:
            # A name that is in neither list is read by a function that is.
            culprits = (
                {error.name: error}
                if error.name in left
                else _cannot_cross_alone(namespace, left, limit_bytes)
            )
            if not culprits:
                raise
            left = [name for name in left if name not in culprits]
            left_out |= {name: str(one) for name, one in culprits.items()}
        else:
            return Sent(crossing=crossing, left_out=left_out)


def _cannot_cross_alone(
    namespace: dict[str, Any], names: Iterable[str], limit_bytes: int
) -> dict[str, CannotCross]:
    found = {}
    for name in names:
        try:
            pack(namespace, [name], limit_bytes=limit_bytes)
        except CannotCross as error:
            found[name] = error
    return found


def notes(left_out: Mapping[str, str], opaque: str) -> list[str]:
    """Return what to tell before the cell runs: which names stay here, and why that matters."""
    if not left_out:
        return []
    reasons = "; ".join(
        reason if reason.startswith(name) else f"{name}: {reason}"
        for name, reason in left_out.items()
    )
    return [f"{opaque}, so all that can cross is sent. Left out: {reasons}"]


def explained(error: CellError, left_out: Mapping[str, str]) -> CellError:
    """Return the cell's error; where a name is missing that was left out, with the reason."""
    if type(error.exception) is not NameError:  # No subclass: its text may be the user's code.
        return error
    match = _UNKNOWN.search(str(error.exception))
    reason = left_out.get(match[1]) if match else None
    if match is None or reason is None:
        return error
    note = f"{match[1]} was left out of the scheduled cell: {reason}"
    error.exception.add_note(note)
    return CellError(
        exception=error.exception, traceback_lines=[*error.traceback_lines, f"\n{note}"]
    )
