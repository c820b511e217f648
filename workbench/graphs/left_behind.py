"""What a cell changes that stays in its home, as far as the cell's own text shows it.

Modules and importable classes cross by name: what is set on them does not come back, nor do
matplotlib's settings and the figures that pyplot keeps.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Final

from workbench.graphs.cell import Cell
from workbench.graphs.scopes import function_bindings, same_scope

_TRAVELS: Final = ("os.environ", "pandas.options", "sys.path", "warnings.filters")
"""The process state that crosses both ways and that code sets through a module."""

_PYPLOT: Final = "matplotlib.pyplot"
_SETTINGS: Final = "matplotlib.rcParams"
_SETTERS: Final = frozenset(
    {
        f"{_SETTINGS}.update",
        f"{_PYPLOT}.rcParams.update",
        f"{_PYPLOT}.style.use",
        "matplotlib.style.use",
    }
    | {f"{where}.{name}" for where in ("matplotlib", _PYPLOT) for name in ("rc", "rcdefaults")}
)
_CLOSES: Final = frozenset({f"{_PYPLOT}.{name}" for name in ("close", "show")})
_DRAWS: Final = frozenset(
    f"{_PYPLOT}.{name}"
    for name in (
        "figure", "axes", "subplot", "subplots", "subplot_mosaic", "plot", "scatter", "hist",
        "bar", "barh", "boxplot", "imshow", "matshow", "contour", "contourf", "errorbar",
        "fill_between", "hist2d", "loglog", "pie", "semilogx", "semilogy", "stem", "step",
        "violinplot",
    )
)  # fmt: skip

_Known = Mapping[str, str]
"""By name, the dotted path of the module or importable class that it stands for."""
_Call = tuple[ast.Call, str]


def left_behind(cell: Cell, namespace: Mapping[str, Any]) -> tuple[str, ...]:
    """Name what a cell changes that does not come back.

    Args:
        cell: The parsed cell.
        namespace: The notebook's names as they are now; looked at, never called.

    Returns:
        One sentence for each thing, with its first line, in the order of lines.
    """
    known = {name: path for name, value in namespace.items() if (path := _path_of(value))}
    found: list[tuple[int, str]] = []
    calls: list[_Call] = []
    used = _used(cell.tree)
    for node, here in _nodes(cell.tree.body, known, used):
        if isinstance(node, ast.Call):
            path = _dotted(node.func, here)
            if path is not None:
                calls.append((node, path))
            elif (what := _set_by_name(node, here)) is not None:
                found.append((node.lineno, what))
        elif (what := _set(node, here)) is not None:
            found.append((node.lineno, what))
    found += _matplotlib(calls)
    first: dict[str, int] = {}
    for line, what in sorted(found):
        first.setdefault(what, line)
    return tuple(f"line {line}: {what}" for what, line in first.items())


def _used(tree: ast.Module) -> frozenset[str]:
    """Return all names and attributes that are read: a function of no other name never runs."""
    read: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read.add(node.id)
        elif isinstance(node, ast.Attribute):
            read.add(node.attr)
    return frozenset(read)


def _nodes(
    body: Iterable[ast.AST], known: _Known, used: frozenset[str]
) -> Iterator[tuple[Any, _Known]]:
    """Yield what stores, deletes or calls, each with what names stand for in its scope."""
    scope = list(same_scope(body))
    bound = {
        one.id for one in scope if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    here = {name: path for name, path in known.items() if name not in bound}
    for node in scope:
        here.update(_imported(node))
    for node in scope:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not _runs(node, used):
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                own = function_bindings(node).bound
                inner = [node.body] if isinstance(node, ast.Lambda) else node.body
                yield from _nodes(inner, {name: here[name] for name in here.keys() - own}, used)
            case ast.ClassDef():
                yield from _nodes(node.body, here, used)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                yield from _nodes(list(ast.iter_child_nodes(node)), here, used)
            case ast.Call() | ast.Attribute() | ast.Subscript():
                yield node, here


def _runs(node: ast.FunctionDef | ast.AsyncFunctionDef, used: frozenset[str]) -> bool:
    """Whether a function might be called by this cell: by its name, its decorator or by Python."""
    return node.name in used or bool(node.decorator_list) or node.name.startswith("__")


# ── what names stand for ─────────────────────────────────────────────────────────────────────


def _path_of(value: Any) -> str | None:
    """Return the dotted path of a live module or importable class; None for anything else."""
    kind = type(value)
    if issubclass(kind, ModuleType):
        # Not through the module itself: some are loaded only when they are asked for something.
        name = object.__getattribute__(value, "__dict__").get("__name__")
        return name if type(name) is str and name != "__main__" else None
    if issubclass(kind, type):
        module = type.__getattribute__(value, "__module__")
        is_importable = type(module) is str and module != "__main__" and module in sys.modules
        return f"{module}.{type.__getattribute__(value, '__qualname__')}" if is_importable else None
    is_settings = kind.__name__ == "RcParams" and str(kind.__module__).startswith("matplotlib")
    return _SETTINGS if is_settings else None


def _imported(node: ast.AST) -> dict[str, str]:
    """Return the modules and classes that an import binds, by name."""
    match node:
        case ast.Import(names=names):
            return {
                one.asname or one.name.partition(".")[0]: one.name
                if one.asname
                else one.name.partition(".")[0]
                for one in names
            }
        case ast.ImportFrom(module=str(module), names=names, level=0):
            found = {one.asname or one.name: _imported_path(module, one.name) for one in names}
            return {name: path for name, path in found.items() if path is not None}
        case _:
            return {}


def _imported_path(module: str, name: str) -> str | None:
    """Return the path of what `from module import name` gives, if that is a module or a class."""
    path = f"{module}.{name}"
    if path in sys.modules or path in {_PYPLOT, _SETTINGS}:
        return path
    loaded = sys.modules.get(module)
    if loaded is None:
        return path if name[:1].isupper() else None  # as classes are written
    if not issubclass(type(loaded), ModuleType):
        return None
    held = object.__getattribute__(loaded, "__dict__").get(name)
    return path if _path_of(held) is not None else None


def _dotted(node: ast.expr, known: _Known) -> str | None:
    """Return the path of `np.random.rand` where `np` is known; None for all else."""
    match node:
        case ast.Name(id=name):
            return known.get(name)
        case ast.Attribute(value=value, attr=name):
            path = _dotted(value, known)
            return None if path is None else f"{path}.{name}"
        case _:
            return None


# ── what is set ──────────────────────────────────────────────────────────────────────────────


def _set(node: ast.Attribute | ast.Subscript, known: _Known) -> str | None:
    """Return what is set or deleted through a module or an importable class."""
    if not isinstance(node.ctx, ast.Store | ast.Del):
        return None
    place: ast.expr = node
    outermost: ast.expr = node
    while isinstance(place, ast.Attribute | ast.Subscript):
        # Of `plt.rcParams["x"]["y"]`, the part that is looked up by attributes alone.
        outermost = place.value if isinstance(place, ast.Subscript) else outermost
        place = place.value
    path = _dotted(outermost, known)
    return None if path is None else _sentence(outermost, path)


def _set_by_name(node: ast.Call, known: _Known) -> str | None:
    """Return what `setattr` or `delattr` changes of a module or an importable class."""
    match node:
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[target, name, *_]):
            path = _dotted(target, known)
            if path is None:
                return None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                attribute = ast.Attribute(value=target, attr=name.value, ctx=ast.Load())
                return _sentence(attribute, f"{path}.{name.value}")
            return f"attributes of `{ast.unparse(target)}`"
        case _:
            return None


def _sentence(node: ast.expr, path: str) -> str | None:
    travels = any(path == one or path.startswith(f"{one}.") for one in _TRAVELS)
    return None if travels else f"`{ast.unparse(node)}`"


def _matplotlib(calls: Sequence[_Call]) -> Iterator[tuple[int, str]]:
    """Yield the settings that are made by calls, and the first figure that is left open."""
    closed = max((node.end_lineno or 0 for node, path in calls if path in _CLOSES), default=0)
    for node, path in sorted(calls, key=lambda one: one[0].lineno):
        if path in _SETTERS:
            yield node.lineno, "matplotlib's settings"
    drawn = [node.lineno for node, path in calls if path in _DRAWS and node.lineno > closed]
    if drawn:
        yield min(drawn), "pyplot's current figure"
