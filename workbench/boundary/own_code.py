"""Changes in place that run the user's own code: it runs before any other change is made.

So a commit that it breaks has changed nothing. It is a `__setstate__` written in Python, or keys of
a dict or set that say how they are hashed and compared.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterable
from typing import Any, Final

from workbench.boundary.containers import put_dict, put_set
from workbench.boundary.errors import BrokenTransfer
from workbench.boundary.hidden_state import hidden_parts, put_state

Write = tuple[Callable[[Any, Any], None], Any, Any]
"""What makes a change, the object, and what it is given."""

_NOTHING_YET: Final = "Nothing was changed; keep what the cell makes in plain values"
_ATOMS: Final = frozenset({type(None), bool, int, float, complex, str, bytes})


def make(write: Write, *, next_step: str = _NOTHING_YET) -> None:
    """Makes a change.

    Raises:
        BrokenTransfer: The object refused it.
    """
    put, value, state = write
    try:
        put(value, state)
    except Exception as problem:
        raise BrokenTransfer(
            f"a {type(value).__qualname__} refused what the cell made of it, and no name was bound:"
            f" {type(problem).__name__}: {problem}",
            next_step=next_step,
        ) from problem


def run_own_code(writes: Iterable[Write]) -> list[Write]:
    """Makes the changes that only the user's own code can make, and tries others on a copy.

    Returns:
        The changes that are still to be made.

    Raises:
        BrokenTransfer: An object refused its change; those before it were set back.
    """
    left: list[Write] = []
    with contextlib.ExitStack() as undo:
        for write in writes:
            put, value, state = write
            if put is put_state and isinstance(type(value).__setstate__, types.FunctionType):
                undo.callback(_set_back, value, hidden_parts(value)[1:])
                make(write)
                continue
            if put is put_dict and not _are_atoms(key for key, _ in state[1]):
                make((put, dict.copy(value), state))
            elif put is put_set and not _are_atoms(state[0]):
                make((put, set(), state))
            left.append(write)
        undo.pop_all()
    return left


def _set_back(value: Any, state: Any) -> None:
    with contextlib.suppress(Exception):  # It is the user's own code that has failed already.
        put_state(value, state)


def _are_atoms(keys: Iterable[Any]) -> bool:
    return all(type(key) in _ATOMS for key in keys)
