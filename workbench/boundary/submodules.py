"""Submodules: a package that crosses has those on the other side that the code there names.

`import urllib.request` binds `urllib` alone, and to import that elsewhere does not bring `request`.
All that one side has loaded is not brought along: with a large library that takes seconds.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import sys
import types
from collections.abc import Collection, Iterable

from workbench.boundary.kinds import is_importable_module


def attributes_in(tree: ast.AST) -> frozenset[str]:
    """Returns what code calls things of modules: its attributes, and what it imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Import):
            found.update(part for one in node.names for part in one.name.split("."))
    return frozenset(found)


def named_submodules(values: Iterable[object], attributes: Collection[str]) -> list[str]:
    """Returns the loaded submodules that code names.

    Args:
        values: What crosses; the modules among it count.
        attributes: What the code on either side calls things of modules.
    """
    modules = {id(one): one for one in values if type(one) is types.ModuleType}
    packages = [f"{one.__name__}." for one in modules.values() if hasattr(one, "__path__")]
    if not packages or not attributes:
        return []
    return [
        name
        for name, module in list(sys.modules.items())
        for package in packages
        if name.startswith(package)
        and all(part in attributes for part in name.removeprefix(package).split("."))
        and type(module) is types.ModuleType
        and is_importable_module(module)
    ]


def import_submodules(names: Iterable[str]) -> None:
    """Imports what is not loaded yet; one that cannot be imported is missed where it is used."""
    for name in names:
        if name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
