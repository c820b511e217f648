"""Functions of the notebook: they cross without a copy of their globals.

The namespace itself is known to both sides, so on the other side a function reads and binds the
names that are there. A cell (a variable that closures share) crosses once; it is made empty and
filled after it can be referred to, since it can hold the very function that closes over it.
"""

from __future__ import annotations

import dis
import functools
import marshal
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any, Final

from workbench.boundary.kinds import is_importable, is_importable_module

_ATTRIBUTES: Final = (
    "__defaults__",
    "__kwdefaults__",
    "__annotations__",
    "__doc__",
    "__module__",
    "__name__",
    "__qualname__",
)
_READS: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "DELETE_GLOBAL"})
_BINDS: Final = frozenset({"STORE_GLOBAL"})


class FunctionReducer:
    """Reduces functions for one pickler, and learns which names they need.

    Attributes:
        reads: Names of the notebook that the functions read, in the order they were met.
        binds: Names of the notebook that the functions bind.
        attributes: What the functions call things of modules, and all else that they name.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self.reads: dict[str, None] = {}
        self.binds: dict[str, None] = {}
        self.attributes: set[str] = set()

    def function(self, function: types.FunctionType) -> Any:
        """Reduces a function: by name where it can be imported, else without its globals."""
        if is_importable(function):
            return NotImplemented
        self.attributes.update(_all_names(function.__code__))
        if function.__globals__ is self._namespace:
            reads, binds = _global_names(function.__code__)
            self.reads.update(dict.fromkeys(reads))
            self.binds.update(dict.fromkeys(binds))
        args = (function.__code__, _globals_token(function), function.__closure__)
        state = function.__dict__, {name: getattr(function, name) for name in _ATTRIBUTES}
        return make_function, args, state, None, None, set_function


def reduce_cell(cell: types.CellType) -> Any:
    """Reduces a variable that closures share."""
    try:
        return types.CellType, (), (cell.cell_contents,), None, None, set_cell
    except ValueError:  # It is empty: what it is named after was not bound yet.
        return types.CellType, ()


def reduce_code(code: types.CodeType) -> Any:
    """Reduces code as it is, line numbers and file name included."""
    return marshal.loads, (marshal.dumps(code),)


def make_function(
    code: types.CodeType,
    holder: types.ModuleType | dict[str, Any],
    cells: tuple[types.CellType, ...] | None,
) -> types.FunctionType:
    """Returns a function without its attributes, whose globals are a module's or a dict itself."""
    namespace = vars(holder) if isinstance(holder, types.ModuleType) else holder
    return types.FunctionType(code, namespace, None, None, cells)


def set_function(function: types.FunctionType, state: tuple[Any, ...]) -> None:
    """Gives a function its attributes."""
    own, attributes = state
    function.__dict__ = own
    for name, value in attributes.items():
        setattr(function, name, value)


def set_cell(cell: types.CellType, state: tuple[Any]) -> None:
    """Fills a cell."""
    (cell.cell_contents,) = state


def _globals_token(function: types.FunctionType) -> Any:
    """Returns what stands for a function's globals: its module, or the dict itself."""
    module = sys.modules.get(function.__globals__.get("__name__", ""))
    if module is not None and vars(module) is function.__globals__ and is_importable_module(module):
        return module
    return function.__globals__


@functools.lru_cache(maxsize=4096)
def _global_names(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the global names that a code object and those within it read, and bind."""
    reads: dict[str, None] = {}
    binds: dict[str, None] = {}
    for one in _with_nested(code):
        for instruction in dis.get_instructions(one):
            if instruction.opname in _READS:
                reads[instruction.argval] = None
            elif instruction.opname in _BINDS:
                binds[instruction.argval] = None
    return tuple(reads), tuple(binds)


@functools.lru_cache(maxsize=4096)
def _all_names(code: types.CodeType) -> frozenset[str]:
    """Returns every name in code that is not a local variable; those of modules by their parts."""
    return frozenset(
        part for one in _with_nested(code) for name in one.co_names for part in name.split(".")
    )


def _with_nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _with_nested(constant)
