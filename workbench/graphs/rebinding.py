"""What code that is not followed may do to names, as far as its text tells."""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import Any, Final

_PATCHING: Final = frozenset({"setattr", "delattr", "patch", "monkeypatch"})
_STORING: Final = frozenset({dis.opmap["STORE_GLOBAL"], dis.opmap["DELETE_GLOBAL"]})


def why_patching(node: ast.stmt) -> str | None:
    """Say that a statement may replace functions of a library, as some do on purpose."""
    for one in ast.walk(node):
        name = ""
        if isinstance(one, ast.Call):
            name = getattr(one.func, "id", None) or getattr(one.func, "attr", None) or ""
        if isinstance(one, ast.Attribute) and one.attr == "__dict__":
            name = "setattr"
        if name in _PATCHING or name.startswith("patch_"):
            line = getattr(one, "lineno", node.lineno)
            return f"line {line} uses {name}, which may change what other names do"
    return None


def rebindable(tree: ast.Module, namespace: Iterable[Any]) -> frozenset[str]:
    """Return names that a function of the notebook could rebind if unknown code called it.

    Args:
        tree: The cell.
        namespace: The notebook's values.
    """
    found = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    for value in namespace:
        for function in _functions(value):
            found |= _stored_globals(function.__code__)
    return frozenset(found)


def _functions(value: Any) -> list[FunctionType]:
    if type(value) is FunctionType:
        return [value]
    if issubclass(type(value), type):
        return [one for one in type.__getattribute__(value, "__dict__").values()
                if type(one) is FunctionType]  # fmt: skip
    return []


def _stored_globals(code: CodeType) -> set[str]:
    """Return a superset of the names that a function stores or deletes as globals."""
    found = set(code.co_names) if _STORING & set(code.co_code[::2]) else set()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _stored_globals(constant)
    return found
