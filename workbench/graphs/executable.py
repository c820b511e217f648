"""The code of a plan's nodes, rebuilt in the home from the plan and the same cell."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final, cast

from workbench.graphs.cell import Cell, Statement
from workbench.graphs.errors import PlanMismatch
from workbench.graphs.maps import ITEM, MapShape, match_map
from workbench.protocol.plan import Edge, Node, NodeKind, Plan

VALUE: Final = "__value__"
"""In `bind` code: the name of the value to be bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCode:
    """What a task computes and binds.

    Attributes:
        expression: `eval` it over the names that the node reads.
        bind: `exec` it where VALUE is the task's value, to bind the statement's names; None for
            a bare expression.
    """

    expression: CodeType
    bind: CodeType | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MapCode:
    """What a map computes for each item, and what the home does with the results.

    Attributes:
        shape: Its parts.
        items: `eval` it in the home, over the names that the node reads: the list of items.
        finish: `eval` it where `maps.COLLECTED` is the list of values; None where the
            collection itself is the statement's value.
        bind: As in `TaskCode`; None where nothing is bound by assignment.
        bind_item: `exec` it where VALUE is the last item, to bind a loop's own targets; None for
            a comprehension.
        key: `eval` it where an item is bound, for its key; None where there are no keys.
    """

    shape: MapShape
    items: CodeType
    finish: CodeType | None
    bind: CodeType | None
    bind_item: CodeType
    key: CodeType | None
    _item: CodeType

    def item_function(self, names: dict[str, Any]) -> Callable[[Any], tuple[Any, dict[str, Any]]]:
        """Return the function of one item.

        Args:
            names: The names that the node reads: the function's globals.

        Returns:
            A function that gives an item's value and, for a loop, the names that its body bound.
        """
        made: dict[str, Any] = {}
        exec(self._item, names, made)  # noqa: S102  (running the user's cell is the job)
        return cast("Callable[[Any], tuple[Any, dict[str, Any]]]", made[ITEM])


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutableNode:
    """A node with its code; exactly one of `task`, `map` is set unless it is a barrier."""

    node: Node
    statement: Statement
    task: TaskCode | None = None
    map: MapCode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutablePlan:
    """A plan with its code, in program order.

    Attributes:
        before: For each node, the edges that end in it.
    """

    cell: Cell
    nodes: tuple[ExecutableNode, ...]
    before: tuple[tuple[Edge, ...], ...]


def executable(plan: Plan, cell: Cell) -> ExecutablePlan:
    """Build the code of a plan.

    Args:
        plan: Made of the same source.
        cell: The cell as parsed here.

    Raises:
        PlanMismatch: Plan and cell do not belong together.
    """
    sources = [one.source for one in cell.statements]
    if [one.source for one in plan.nodes] != sources:
        raise PlanMismatch(
            f"a plan of {len(plan.nodes)} statements does not fit a cell of {len(sources)}",
            next_step="The plan was made of other source: please report it",
        )
    before: list[list[Edge]] = [[] for _ in plan.nodes]
    for edge in plan.edges:
        before[edge.target].append(edge)
    return ExecutablePlan(
        cell=cell,
        nodes=tuple(
            _executable(node, statement, cell)
            for node, statement in zip(plan.nodes, cell.statements, strict=True)
        ),
        before=tuple(map(tuple, before)),
    )


def _executable(node: Node, statement: Statement, cell: Cell) -> ExecutableNode:
    match node.kind:
        case NodeKind.TASK:
            return ExecutableNode(node=node, statement=statement, task=_task(statement.node, cell))
        case NodeKind.MAP:
            return ExecutableNode(node=node, statement=statement, map=_map(statement.node, cell))
        case NodeKind.BARRIER:
            return ExecutableNode(node=node, statement=statement)


def _task(node: ast.stmt, cell: Cell) -> TaskCode:
    if not isinstance(node, ast.Assign | ast.Expr):
        raise PlanMismatch(f"line {node.lineno} cannot be a task")
    targets = node.targets if isinstance(node, ast.Assign) else []
    return TaskCode(expression=cell.compile(node.value, "eval"), bind=_bind(targets, node, cell))


def _bind(targets: list[ast.expr], place: ast.AST, cell: Cell) -> CodeType | None:
    if not targets:
        return None
    value = ast.Name(VALUE, ast.Load())
    node = ast.copy_location(ast.Assign(targets=targets, value=value), place)
    return cell.compile(ast.fix_missing_locations(node))


def _map(node: ast.stmt, cell: Cell) -> MapCode:
    shape = match_map(node)
    if shape is None:
        raise PlanMismatch(f"line {node.lineno} cannot be a map")
    bind_item = _bind([_item_target(shape)], node, cell)
    assert bind_item is not None
    return MapCode(
        shape=shape,
        items=cell.compile(_items(shape, node), "eval"),
        finish=None if shape.finish is None else _compile_expression(shape.finish, cell),
        bind=_bind(list(shape.targets), node, cell),
        bind_item=bind_item,
        key=None if shape.key is None else _compile_expression(shape.key, cell),
        _item=cell.compile(_item_function(shape, node)),
    )


def _compile_expression(node: ast.expr, cell: Cell) -> CodeType:
    return cell.compile(ast.fix_missing_locations(node), "eval")


def _item_target(shape: MapShape) -> ast.expr:
    targets = [one.target for one in shape.generators]
    return targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())


def _items(shape: MapShape, place: ast.stmt) -> ast.expr:
    """Return `[*iterable]`, or for several loops the list of their targets' tuples."""
    if len(shape.generators) == 1:
        listed: ast.expr = ast.List([ast.Starred(shape.generators[0].iter, ast.Load())], ast.Load())
    else:
        # Each loop's target becomes one name, so that a tuple is passed on as the object it is.
        names = [f"{ITEM}{index}" for index in range(len(shape.generators))]
        element = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        loops = [
            ast.comprehension(ast.Name(name, ast.Store()), one.iter, [], 0)
            for name, one in zip(names, shape.generators, strict=True)
        ]
        listed = ast.ListComp(element, loops)
    return ast.fix_missing_locations(ast.copy_location(listed, place))


def _item_function(shape: MapShape, place: ast.stmt) -> ast.FunctionDef:
    given = ast.Assign([_item_target(shape)], ast.Name(VALUE, ast.Load()))
    bound = ast.Dict(
        [ast.Constant(name) for name in shape.body_names],
        [ast.Name(name, ast.Load()) for name in shape.body_names],
    )
    result = ast.Assign([ast.Name(ITEM, ast.Store())], shape.value)
    returned = ast.Return(ast.Tuple([ast.Name(ITEM, ast.Load()), bound], ast.Load()))
    function = ast.FunctionDef(
        name=ITEM,
        args=ast.arguments([], [ast.arg(VALUE)], None, [], [], None, []),
        body=[given, *shape.body, result, returned],
        decorator_list=[],
    )
    for one in (given, result, returned):
        ast.copy_location(one, shape.value)
    return ast.fix_missing_locations(ast.copy_location(function, place))
