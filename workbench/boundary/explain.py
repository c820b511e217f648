"""Says where in a variable an object is."""

from __future__ import annotations

import contextlib
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from workbench.boundary.kinds import slot_names

_MOST_LOOKED_AT: Final = 200_000
_SHOWN_AT_THE_START: Final = 4
_SHOWN_AT_THE_END: Final = 2
_WITHOUT_PARTS: Final = (type, types.ModuleType)


def path_to(culprit: Any, root: Any) -> str | None:
    """Returns how to get from a variable's value to an object within it.

    Args:
        culprit: The object, found by identity.
        root: The variable's value.

    Returns:
        Such as `['log'][0].file`; empty where it is the value itself; None where no way is found.
    """
    came_from: dict[int, tuple[Any, str, Any]] = {id(root): (root, "", None)}
    queue: deque[Any] = deque([root])
    while queue and len(came_from) < _MOST_LOOKED_AT:
        value = queue.popleft()
        if value is culprit:
            return _spell(_steps_to(value, root, came_from))
        for step, part in _parts(value):
            if id(part) not in came_from:
                came_from[id(part)] = (part, step, value)
                queue.append(part)
    return None


def _steps_to(value: Any, root: Any, came_from: Mapping[int, tuple[Any, str, Any]]) -> list[str]:
    steps = []
    while value is not root:
        _, step, value = came_from[id(value)]
        steps.append(step)
    return steps[::-1]


def _spell(steps: Sequence[str]) -> str:
    """Returns a way as one text: its two ends where it is long."""
    left_out = len(steps) - _SHOWN_AT_THE_START - _SHOWN_AT_THE_END
    if left_out <= 1:
        return "".join(steps)
    start, end = steps[:_SHOWN_AT_THE_START], steps[-_SHOWN_AT_THE_END:]
    return f"{''.join(start)}…({left_out} more){''.join(end)}"


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if issubclass(type(value), _WITHOUT_PARTS):
        return
    for cls, parts in _PARTS.items():
        if issubclass(type(value), cls):
            yield from parts(value)
            break
    own = getattr(value, "__dict__", None)
    for name, item in own.items() if isinstance(own, dict) else ():
        yield f".{name}", item
    for name in slot_names(type(value)):
        if hasattr(value, name):
            yield f".{name}", getattr(value, name)


def _of_a_dict(value: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, item in dict.items(value):
        yield f"[{key!r}]", item
        yield f" key {key!r}", key


def _of_a_function(value: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # The variable is not bound yet.
            yield f"'s variable {name!r}", cell.cell_contents
    yield "'s defaults", value.__defaults__


_PARTS: Final[dict[Any, Callable[[Any], Iterable[tuple[str, Any]]]]] = {
    dict: _of_a_dict,
    (list, tuple, deque): lambda value: ((f"[{index}]", one) for index, one in enumerate(value)),
    (set, frozenset): lambda value: ((" item", one) for one in value),
    types.FunctionType: _of_a_function,
    types.MethodType: lambda value: ((".__self__", value.__self__),),
}
"""Type → how to write the way to each part, and the part."""
