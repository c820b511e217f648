"""Loops and comprehensions whose items might be computed beside one another, by their shape.

The shape alone proves nothing: `analysis.py` proves a statement, and only then uses the shape.
The same function finds the shape again in the home.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workbench.graphs.scopes import Comprehension, target_names

COLLECTED: Final = "__collected__"
"""In `MapShape.finish`: the list of all values, in order."""
ITEM: Final = "__item__"
_EAGER: Final = frozenset({"list", "tuple", "set", "sum", "sorted", "min", "max"})
"""What takes all of a generator's items at once, and asks nothing else of it."""


class Collect(enum.Enum):
    """What becomes of the values, in the order of the items."""

    LIST = "list"
    SET = "set"
    DICT = "dict"  # key before value, as in a comprehension
    APPEND = "append"  # container.append(value)
    KEYED = "keyed"  # container[key] = value
    ADD = "add"  # container += value


IN_PLACE: Final = frozenset({Collect.APPEND, Collect.KEYED, Collect.ADD})
"""These change what is there; the others make something new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapShape:
    """The parts of a map.

    Attributes:
        generators: The loops, outermost first, as in a comprehension; without conditions.
        body: Assignments to names of the loop itself, run for each item before `value`.
        value: What each item gives.
        key: Under which key, for DICT and KEYED; over the loop's own targets only.
        collect: What becomes of the values.
        container: The name of what is changed in place, or None.
        finish: An expression over COLLECTED that gives the statement's value; None where the
            collection itself is the value.
        targets: What the statement assigns its value to; empty for a bare expression or a loop.
        loop: It is a `for` loop: its names stay bound afterwards, as in the last round.
        library: Names that must be Python's own for the shape to mean what it seems to.
    """

    generators: tuple[ast.comprehension, ...]
    value: ast.expr
    collect: Collect
    body: tuple[ast.stmt, ...] = ()
    key: ast.expr | None = None
    container: str | None = None
    finish: ast.expr | None = None
    targets: tuple[ast.expr, ...] = ()
    loop: bool = False
    library: tuple[str, ...] = ()

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names that each item binds."""
        return tuple(name for one in self.generators for name in target_names(one.target))

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names that the body binds."""
        found: dict[str, None] = {}
        for node in self.body:
            assert isinstance(node, ast.Assign)
            for target in node.targets:
                found.update(dict.fromkeys(target_names(target)))
        return tuple(found)


def match_map(node: ast.stmt) -> MapShape | None:
    """Return the map that a statement looks like, or None."""
    match node:
        case ast.For(orelse=[]):
            return _loop(node)
        case ast.Assign(targets=targets) if all(map(_binds_names, targets)):
            return _expression(node.value, tuple(targets))
        case ast.Expr():
            return _expression(node.value, ())
        case _:
            return None


def binds_names(targets: Sequence[ast.expr]) -> bool:
    """Whether assignment targets bind names only."""
    return all(map(_binds_names, targets))


def _binds_names(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_binds_names, target.elts))
    return isinstance(target, ast.Name)


def _expression(  # noqa: PLR0911  (a table)
    value: ast.expr, targets: tuple[ast.expr, ...]
) -> MapShape | None:
    match value:
        case ast.ListComp() | ast.SetComp() | ast.DictComp():
            return _comprehension(value, targets, None)
        case ast.Call(
            func=ast.Name(id="list"),
            args=[ast.Call(func=ast.Name(id="map"), args=[function, items], keywords=[])],
            keywords=[],
        ) if not isinstance(items, ast.Starred):
            return _mapped(function, items, targets)
        case ast.Call(args=[ast.ListComp() | ast.GeneratorExp() as inner, *others]):
            simple = [*others, *(one.value for one in value.keywords)]
            if not all(isinstance(one, ast.Constant | ast.Name) for one in simple):
                return None
            if not isinstance(value.func, ast.Name | ast.Attribute):
                return None
            name = value.func.id if isinstance(value.func, ast.Name) else ""
            generated = isinstance(inner, ast.GeneratorExp)
            if generated and name not in _EAGER:
                return None
            hole = ast.copy_location(ast.Name(COLLECTED, ast.Load()), inner)
            finish = ast.Call(value.func, [hole, *others], value.keywords)
            library = (name,) if generated else ()
            finish = ast.copy_location(finish, value)
            return _comprehension(inner, targets, finish, library)
        case _:
            return None


def _comprehension(
    node: Comprehension,
    targets: tuple[ast.expr, ...],
    finish: ast.expr | None,
    library: tuple[str, ...] = (),
) -> MapShape | None:
    names: set[str] = set()
    for one in node.generators:
        uses = {inner.id for inner in ast.walk(one.iter) if isinstance(inner, ast.Name)}
        # An inner loop over something of the outer one's would be run at another time.
        if one.ifs or one.is_async or not _binds_names(one.target) or uses & names:
            return None
        names |= set(target_names(one.target))
    if any(isinstance(inner, ast.NamedExpr | ast.Await) for inner in ast.walk(node)):
        return None
    key = node.key if isinstance(node, ast.DictComp) else None
    kinds = {ast.SetComp: Collect.SET, ast.DictComp: Collect.DICT}
    return MapShape(
        generators=tuple(node.generators),
        value=node.value if isinstance(node, ast.DictComp) else node.elt,
        key=key,
        collect=kinds.get(type(node), Collect.LIST),
        finish=finish,
        targets=targets,
        library=library,
    )


def _mapped(function: ast.expr, items: ast.expr, targets: tuple[ast.expr, ...]) -> MapShape | None:
    if not isinstance(function, ast.Name | ast.Attribute | ast.Lambda):
        return None
    item = ast.copy_location(ast.Name(ITEM, ast.Store()), items)
    given = ast.copy_location(ast.Name(ITEM, ast.Load()), items)
    value = ast.copy_location(ast.Call(function, [given], []), function)
    return MapShape(
        generators=(ast.comprehension(target=item, iter=items, ifs=[], is_async=0),),
        value=value,
        collect=Collect.LIST,
        targets=targets,
        library=("list", "map"),
    )


def _loop(node: ast.For) -> MapShape | None:
    *body, last = node.body
    own = {*target_names(node.target)}
    for one in body:
        if not (isinstance(one, ast.Assign) and binds_names(one.targets)):
            return None
        own |= {name for target in one.targets for name in target_names(target)}
    if not _binds_names(node.target):
        return None
    found = _last(last)
    if found is None or found.container in own:
        return None
    if any(isinstance(inner, ast.NamedExpr | ast.Await) for inner in ast.walk(node)):
        return None
    key_names = {one.id for one in ast.walk(found.key or last) if isinstance(one, ast.Name)}
    if found.key is not None and key_names & (own - {*target_names(node.target)}):
        return None
    loop = ast.comprehension(target=node.target, iter=node.iter, ifs=[], is_async=0)
    return MapShape(
        generators=(loop,),
        body=tuple(body),
        value=found.value,
        key=found.key,
        collect=found.collect,
        container=found.container,
        loop=True,
    )


def _last(node: ast.stmt) -> MapShape | None:
    """Return what the last statement of a loop does with its value."""
    match node:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="append"),
                args=[value],
                keywords=[],
            )
        ) if not isinstance(value, ast.Starred):
            return MapShape(generators=(), value=value, collect=Collect.APPEND, container=name)
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=key)], value=value):
            return MapShape(
                generators=(), value=value, key=key, collect=Collect.KEYED, container=name
            )
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
            return MapShape(generators=(), value=value, collect=Collect.ADD, container=name)
        case _:
            return None
