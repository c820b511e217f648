"""What the notebook's own code finds in the notebook's names while objects are made.

To make an object may run code of the notebook: a `__setstate__`, or the `__hash__` of a dict's key.
That code reads names, so they are bound before, code and what it reads ahead of all else.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, Final

_ABSENT: Final = object()  # Never a value.
_CODE: Final = (type, types.FunctionType, types.BuiltinFunctionType)


def code_first(
    names: Iterable[str], values: Mapping[str, Any], read_by_code: Container[str] = ()
) -> list[str]:
    """Returns names in an order in which code can be run: modules, code, what it reads, the rest.

    Args:
        names: Names.
        values: Their values, and those of others.
        read_by_code: What functions read.
    """

    def rank(name: str) -> int:
        cls = type(values[name])
        if issubclass(cls, types.ModuleType):
            return 0
        if issubclass(cls, _CODE):
            return 1
        return 2 if name in read_by_code else 3

    return sorted(names, key=rank)


@contextlib.contextmanager
def bound_meanwhile(namespace: dict[str, Any]) -> Iterator[Callable[[str, Any], None]]:
    """Yields what binds a name; in the end all such names are as they were."""
    before: dict[str, Any] = {}

    def bind(name: str, value: Any) -> None:
        before.setdefault(name, namespace.get(name, _ABSENT))
        namespace[name] = value

    try:
        yield bind
    finally:
        for name, value in before.items():
            if value is _ABSENT:
                namespace.pop(name, None)
            else:
                namespace[name] = value
