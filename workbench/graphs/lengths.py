"""How many items a loop will have, where that can be told beforehand."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final

_SIZED: Final = frozenset({list, tuple, dict, set, range, str})
_SAME: Final = frozenset({"enumerate", "sorted", "list", "tuple", "reversed"})


class Lengths:
    """Whole numbers and lengths of names, as they are at a point of the cell.

    Args:
        namespace: The notebook's names; only looked at.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._assigned: dict[str, tuple[int | None, int | None]] = {}

    def assign(self, name: str, value: ast.expr | None) -> None:
        """Note what a name is bound to; None for what cannot be told."""
        known = (None, None) if value is None else (self.number(value), self.of(value))
        self._assigned[name] = known

    def number(self, node: ast.expr) -> int | None:
        """Return the whole number that an expression is, or None."""
        match node:
            case ast.Constant(value=value) if type(value) is int:
                return value
            case ast.Name(id=name):
                if name in self._assigned:
                    return self._assigned[name][0]
                live = self._namespace.get(name)
                return live if type(live) is int else None
            case ast.Call(func=ast.Name(id="len"), args=[one]):
                return self.of(one)
            case _:
                return None

    def of(self, node: ast.expr) -> int | None:  # noqa: PLR0911  (a table)
        """Return the number of items of an expression, or None."""
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                starred = any(isinstance(one, ast.Starred) for one in elements)
                return None if starred else len(elements)
            case ast.Name(id=name):
                if name in self._assigned:
                    return self._assigned[name][1]
                live = self._namespace.get(name)
                return len(live) if type(live) in _SIZED and live is not None else None
            case ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]):
                return self._range(bounds)
            case ast.Call(func=ast.Name(id="zip"), args=[_, *_] as given, keywords=[]):
                lengths = [self.of(one) for one in given]
                known = [one for one in lengths if one is not None]
                return min(known) if len(known) == len(lengths) else None
            case ast.Call(func=ast.Name(id=name), args=[one, *_]) if name in _SAME:
                return self.of(one)
            case ast.Call(func=ast.Attribute(value=held, attr="items" | "keys" | "values")):
                return self.of(held)
            case _:
                return None

    def _range(self, bounds: list[ast.expr]) -> int | None:
        numbers = [self.number(one) for one in bounds]
        known = [one for one in numbers if one is not None]
        if len(known) != len(numbers) or not known:
            return None
        try:
            return len(range(*known))
        except (TypeError, ValueError, OverflowError):
            return None
