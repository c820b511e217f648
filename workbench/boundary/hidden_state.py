"""What changed in an object out of sight, and how it is written back.

C code keeps a state that only shows when the object is pickled; it is written back through the
type's own `__setstate__`. A class that has a say in how it is pickled may keep objects that never
crossed themselves; where one of those changed, the attribute that holds it is replaced.
"""

from __future__ import annotations

import copyreg
import itertools
import pickle
from collections.abc import Callable
from typing import Any

from workbench.boundary.attributes import Difference, put_attributes
from workbench.boundary.containers import Facet
from workbench.boundary.errors import Refused
from workbench.boundary.fingerprint import Fingerprints


def hidden_facet(fingerprints: Fingerprints) -> Facet:
    """Returns what can change in the state of C code."""

    def take(value: Any) -> bytes | None:
        return fingerprints.of(hidden_parts(value))

    def difference(value: Any, before: bytes | None) -> Any:
        hidden = hidden_parts(value)
        if fingerprints.of(hidden) == before:
            return None
        if not hidden[1:]:
            raise Refused(
                "was changed, and its type has no way to write that back",
                "Make it in the cell that changes it",
            )
        return hidden[1:]

    return Facet(take=take, difference=difference, put=put_state)


def put_state(value: Any, state: tuple[Any]) -> None:
    """Gives an object a state through its own `__setstate__`."""
    value.__setstate__(*state)


def attributes_facet(fingerprints: Fingerprints) -> Facet:
    """Returns what can change in the attributes of an instance that says how it is pickled."""

    def take(value: Any) -> dict[str, tuple[Any, bytes | None]]:
        return {name: (part, fingerprints.of(part)) for name, part in value.__dict__.items()}

    def difference(value: Any, before: dict[str, tuple[Any, bytes | None]]) -> Difference | None:
        now = take(value)
        changed = {
            name: part
            for name, (part, print_now) in now.items()
            if name not in before or part is not before[name][0] or print_now != before[name][1]
        }
        gone = [name for name in before if name not in now]
        # A name that was deleted and set again stands at the end: all from there on are set again.
        kept = [name for name in before if name in now]
        steady = sum(1 for _ in itertools.takewhile(_is_same, zip(now, kept, strict=False)))
        if steady < len(kept):
            gone += list(now)[steady:]
            changed = {name: now[name][0] for name in list(now)[steady:]} | changed
        return (changed, gone) if changed or gone else None

    return Facet(take=take, difference=difference, put=put_attributes)


def _is_same(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def hidden_parts(value: Any) -> tuple[Any, ...]:
    """Returns what pickle says of an object beside its attributes: arguments and own state."""
    reduce: Callable[[Any], Any] | None = copyreg.dispatch_table.get(type(value))
    reduced: Any = reduce(value) if reduce else value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    if isinstance(reduced, str):  # It is known by a name.
        return ()
    return tuple(reduced[1 : 3 if hasattr(value, "__setstate__") else 2])
