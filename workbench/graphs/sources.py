"""The source of the notebook's functions: of cells that the kernel ran, and of scheduled ones."""

from __future__ import annotations
import __future__

import ast
import linecache
from collections.abc import Iterator
from types import CodeType
from typing import Final

_FUTURE: Final = __future__.annotations.compiler_flag
"""Of `from __future__ import …`, the only one that still changes a function's code."""
_LINECACHE_ENTRY: Final = 4

_Definition = ast.FunctionDef | ast.AsyncFunctionDef
_Parsed = tuple[ast.Module, list[CodeType]] | None

_scheduled: dict[str, str] = {}
_parsed: dict[tuple[str, int, int], _Parsed] = {}


def remember(filename: str, source: str, first_line: int) -> None:
    """Keep the source of a scheduled cell: IPython only knows the magic that it was given to."""
    _scheduled[filename] = "\n" * (first_line - 1) + source


def definition(code: CodeType) -> _Definition | None:
    """Find a function's definition; None unless it compiles to this very code."""
    parsed = _source(code.co_filename, code.co_flags & _FUTURE)
    if parsed is None:
        return None
    tree, units = parsed
    if not any(code in _codes(unit) for unit in units):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    return None


def _source(filename: str, future: int) -> _Parsed:
    text = _scheduled.get(filename)
    if text is None:
        entry = linecache.cache.get(filename)
        if entry is None or len(entry) != _LINECACHE_ENTRY:
            return None  # not a cell that this kernel ran
        text = "".join(entry[2])
    key = (filename, hash(text), future)
    if key not in _parsed:
        _parsed[key] = _parse(text, filename, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | future)
    return _parsed[key]


def _parse(text: str, filename: str, flags: int) -> _Parsed:
    try:
        tree = compile(text, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        assert isinstance(tree, ast.Module)
        # IPython compiles statement by statement, which makes other code of `module.function()`
        # than one compilation that sees the module's import.
        units = [
            compile(ast.Module([one], type_ignores=[]), filename, "exec", flags, dont_inherit=True)
            for one in tree.body
        ]
        units.append(compile(text, filename, "exec", flags, dont_inherit=True))
    except SyntaxError:
        return None
    return tree, units


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
