"""Says where in a variable the object is that cannot cross, and what to do about it."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from workbench.boundary.kinds import slot_names

_MOST_LOOKED_AT: Final = 200_000

_KINDS: Final = (
    (("TextIOWrapper", "BufferedReader", "BufferedWriter", "BufferedRandom", "FileIO"),
     "an open file", "Close it and open it in the cell that uses it"),
    (("lock", "RLock", "Condition", "Semaphore", "Event", "_RLock"),
     "a lock", "Make it in the cell that uses it"),
    (("socket", "SSLSocket"), "a socket", "Connect in the cell that uses it"),
    (("Thread",), "a thread", "Start it in the cell that uses it"),
    (("Popen",), "a running process", "Start it in the cell that uses it"),
    (("generator", "coroutine", "async_generator"),
     "a suspended computation", "Make it in the same cell, or keep its items in a list"),
    (("Connection", "Cursor"), "a connection", "Connect in the cell that uses it"),
    (("memoryview", "mmap"), "a view of this process's memory", "Use a bytes or numpy copy of it"),
    (("ReferenceType", "weakref"), "a weak reference", "Use an ordinary reference, or none"),
)  # fmt: skip
"""Names of types → what such a thing is, and what to do."""


def what_to_do(culprit: Any) -> tuple[str, str]:
    """Returns what keeps an object from being pickled, and the next step.

    Args:
        culprit: The object.

    Returns:
        A noun phrase, empty where all there is to say is pickle's own message; the next step.
    """
    for base in type(culprit).__mro__:
        for names, noun, next_step in _KINDS:
            if base.__name__ in names:
                return noun, next_step
    return "", "Make it in the cell that uses it, or delete the name"


def path_to(culprit: Any, root: Any) -> str | None:
    """Returns how to get from a variable's value to an object within it.

    Args:
        culprit: The object, found by identity.
        root: The variable's value.

    Returns:
        Such as `['log'][0].file`; empty where it is the value itself; None where no way is found.
    """
    seen = {id(root): root}
    queue: deque[tuple[Any, str]] = deque([(root, "")])
    while queue and len(seen) < _MOST_LOOKED_AT:
        value, path = queue.popleft()
        if value is culprit:
            return path
        for step, part in _parts(value):
            if id(part) not in seen:
                seen[id(part)] = part
                queue.append((part, path + step))
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, type | types.ModuleType):
        return
    if isinstance(value, dict):
        for key, item in dict.items(value):
            yield f"[{key!r}]", item
            yield f" key {key!r}", key
    elif isinstance(value, list | tuple | deque):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    elif isinstance(value, set | frozenset):
        for item in value:
            yield " item", item
    elif isinstance(value, types.FunctionType):
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            yield f"'s variable {name!r}", cell
        yield "'s defaults", value.__defaults__
    elif isinstance(value, types.CellType):
        try:
            yield "", value.cell_contents
        except ValueError:
            return
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    own = getattr(value, "__dict__", None)
    for name, item in own.items() if isinstance(own, dict) else ():
        yield f".{name}", item
    for name in slot_names(type(value)):
        if hasattr(value, name):
            yield f".{name}", getattr(value, name)
