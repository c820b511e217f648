"""Decide for each statement whether it may move, and what it does otherwise."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from workbench.graphs.catalogue import load_catalogue
from workbench.graphs.cell import Cell, Statement
from workbench.graphs.closures import invoke
from workbench.graphs.expressions import assign, evaluate
from workbench.graphs.lengths import Lengths
from workbench.graphs.live import look
from workbench.graphs.machine import Effects, Machine
from workbench.graphs.map_proof import prove_map
from workbench.graphs.maps import IN_PLACE, ITEM, MapShape, binds_names, match_map
from workbench.graphs.names import StatementNames
from workbench.graphs.operators import short
from workbench.graphs.rebinding import rebindable, why_patching
from workbench.graphs.statements import execute
from workbench.graphs.values import SCALARS, UNKNOWN, Kind, Value
from workbench.protocol.plan import NodeKind

IMPORTS: Final = "imports"
_MOST_ITEMS: Final = 100_000
"""A loop of more rounds than this would fill the memory with a list of its items."""
_COMPOUND: Final = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match)
_DEFINES: Final = (ast.FunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found of a statement.

    Attributes:
        kind: How it may run.
        reason: Why.
        reads: Names of the namespace that it reads, through functions too.
        writes: Names that it binds or deletes.
        mutated: Regions older than the statement that it changes.
        changes: Names that reach such a region.
        sources: For each read name: the last statement that bound it or changed its objects,
            and whether its value is that statement's result.
        fence: Why nothing after it may start before it is done, or None.
        inline: A task too small to send anywhere.
        width: Items of a map, where known.
    """

    kind: NodeKind
    reason: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    mutated: frozenset[int] = frozenset()
    changes: tuple[str, ...] = ()
    sources: dict[str, tuple[int, bool]] = field(default_factory=dict)
    fence: str | None = None
    inline: bool = False
    width: int | None = None


def analyse(cell: Cell, namespace: Mapping[str, Any]) -> list[Finding]:
    """Find for each statement of a cell what it may do and whether it may move.

    Args:
        cell: The parsed cell.
        namespace: The notebook's names as they are now. They are looked at by exact type; none of
            their own code runs.

    Returns:
        One finding for each statement, in program order.
    """
    analyst = _Analyst(cell, namespace)
    return [
        analyst.statement(index, statement, names)
        for index, (statement, names) in enumerate(
            zip(cell.statements, cell.names.statements, strict=True)
        )
    ]


@dataclass(slots=True)
class _Task:
    """A statement of the form that a task has: an expression, and names for its value."""

    value: ast.expr
    targets: list[ast.expr]


class _Analyst:
    def __init__(self, cell: Cell, namespace: Mapping[str, Any]) -> None:
        self._cell = cell
        self._namespace = namespace
        self._machine = Machine(
            namespace=namespace, catalogue=load_catalogue(), look=look, invoke=invoke
        )
        self._lengths = Lengths(namespace)
        self._bound: dict[str, int] = {}
        self._results: set[int] = set()
        self._mutations: list[tuple[int, int]] = []
        self._lost: str | None = None
        self._globals: frozenset[str] | None = None

    def statement(self, index: int, statement: Statement, names: StatementNames) -> Finding:
        machine = self._machine
        before = dict(machine.names)
        machine.begin(index, statement.node.lineno)
        if self._lost is not None:
            return self._anything(index, names, f"stays in order: {self._lost}", before)
        if names.opaque is not None:
            self._lost = names.opaque
            return self._anything(index, names, names.opaque, before)
        try:
            return self._statement(index, statement.node, names, before)
        except RecursionError:
            self._lost = f"line {statement.lineno} is too deeply nested to be followed"
            return self._anything(index, names, self._lost, before)

    def _statement(
        self, index: int, node: ast.stmt, names: StatementNames, before: dict[str, Value]
    ) -> Finding:
        shape = match_map(node)
        found = None if shape is None else self._map(index, node, shape, before)
        if found is None:
            self._machine.retry()
            found = self._plain(index, node, names, before)
        self._note_lengths(node, found)
        return found

    # ── the three kinds ──────────────────────────────────────────────────────────────────────

    def _map(
        self, index: int, node: ast.stmt, shape: MapShape, before: dict[str, Value]
    ) -> Finding | None:
        machine = self._machine
        if not prove_map(machine, node, shape) or self._kept_home(before) is not None:
            machine.names.clear()
            machine.names.update(before)
            return None
        width: int | None = 1
        for one in shape.generators:
            length = self._lengths.of(one.iter)
            width = None if width is None or length is None else width * length
        if width is not None and width > _MOST_ITEMS:
            machine.names.clear()
            machine.names.update(before)
            return None
        items = "its items" if width is None else f"{width} items"
        reason = f"proven for each of {items}: `{_item_text(shape)}` changes nothing else"
        finding = self._finding(index, NodeKind.MAP, reason, before, width=width)
        if shape.collect not in IN_PLACE:
            self._results.add(index)
        return finding

    def _plain(
        self, index: int, node: ast.stmt, names: StatementNames, before: dict[str, Value]
    ) -> Finding:
        machine = self._machine
        task = _task_form(node)
        value = UNKNOWN
        if task is not None:
            value = evaluate(machine, task.value, None)
            for target in task.targets:
                assign(machine, target, value, None)
        else:
            machine.weak = isinstance(node, _COMPOUND)
            execute(machine, node, None)
        effects = machine.effects
        if effects.unproven is not None:
            self._lost = self._lost or effects.poison or why_patching(node)
            return self._anything(index, names, effects.unproven, before)
        if task is not None:
            objection = self._objection(task, value, effects)
            if objection is None and effects.work:
                objection = self._kept_home(before)
            if objection is None:
                return self._task(index, value, before)
        else:
            objection = _barrier_reason(node, effects)
        return self._finding(index, NodeKind.BARRIER, objection, before, fence=effects.fence)

    def _task(self, index: int, value: Value, before: dict[str, Value]) -> Finding:
        inline = not self._machine.effects.work
        reason = f"proven: changes nothing, gives {value.kind.value} of its own"
        reason = "proven: a few plain values" if inline else reason
        finding = self._finding(index, NodeKind.TASK, reason, before, inline=inline)
        self._results.add(index)
        return finding

    def _anything(
        self, index: int, names: StatementNames, reason: str, before: dict[str, Value]
    ) -> Finding:
        """A statement that may do anything."""
        machine = self._machine
        machine.heap.forget()
        machine.havoc = True
        rebound = self._rebindable()
        written = (*sorted(names.writes | names.deletes), *machine.effects.writes)
        for name in (*written, *rebound):
            machine.names[name] = UNKNOWN
            self._bound[name] = index
            self._lengths.assign(name, None)
        for name in sorted(machine.names):
            if machine.names[name].kind not in SCALARS | {Kind.MODULE, Kind.CALLABLE}:
                self._lengths.assign(name, None)
        reads = tuple(dict.fromkeys([*machine.effects.reads, *sorted(names.reads)]))
        return Finding(
            kind=NodeKind.BARRIER,
            reason=reason,
            reads=reads,
            writes=tuple(dict.fromkeys(written)),
            sources=self._sources(reads, before),
            fence=reason,
        )

    def _finding(
        self,
        index: int,
        kind: NodeKind,
        reason: str,
        before: dict[str, Value],
        *,
        fence: str | None = None,
        inline: bool = False,
        width: int | None = None,
    ) -> Finding:
        machine = self._machine
        effects = machine.effects
        heap = machine.heap
        reads = tuple(effects.reads)
        sources = self._sources(reads, before)
        old = {one for one in map(heap.find, effects.mutated) if heap.birth(one) < machine.start}
        changes = [name for name, value in machine.names.items() if old and old & heap.reach(value)]
        self._mutations += [(index, region) for region in sorted(old)]
        writes = tuple(effects.writes)
        for name in writes:
            self._bound[name] = index
        for name in changes:
            self._lengths.assign(name, None)
        return Finding(
            kind=kind,
            reason=reason,
            reads=reads,
            writes=tuple(dict.fromkeys([*writes, *sorted(changes)])),
            mutated=frozenset(old),
            changes=tuple(sorted(changes)),
            sources=sources,
            fence=fence,
            inline=inline,
            width=width,
        )

    # ── what a task may not do ───────────────────────────────────────────────────────────────

    def _objection(  # noqa: PLR0911  (one for each reason)
        self, task: _Task, value: Value, effects: Effects
    ) -> str | None:
        """Say why an expression that is fully understood may still not move, or None."""
        machine = self._machine
        heap = machine.heap
        targets = {
            one.id
            for target in task.targets
            for one in ast.walk(target)
            if isinstance(one, ast.Name)
        }
        others = [name for name in effects.writes if name not in targets]
        if effects.fence is not None:
            return effects.fence
        if effects.pinned is not None:
            return effects.pinned
        if others:
            return f"also binds `{others[0]}`"
        for region, what in effects.mutated.items():
            if heap.birth(region) < machine.start:
                return what
        if not machine.is_fresh(value, machine.start):
            return "its value may share memory with another object"
        if not heap.shippable(value):
            kinds = [one.kind for one in heap.parts(value) if not heap.shippable(one)]
            return f"gives {kinds[0].value if kinds else value.kind.value}, which stays in the home"
        if isinstance(task.value, ast.Name):
            return f"another name for `{task.value.id}`"
        return None

    def _kept_home(self, before: dict[str, Value]) -> str | None:
        """Say which name that the statement reads cannot be sent to a worker, or None."""
        for name in self._machine.effects.reads:
            held = self._machine.stays(self._value_before(name, before))
            if held is not None:
                return f"reads `{name}`, which holds {held.value} and so stays in the home"
        return None

    def _value_before(self, name: str, before: dict[str, Value]) -> Value:
        """Return what a name was when the statement began."""
        value = before.get(name)
        if value is not None or name not in self._namespace:
            return value or self._machine.builtin(name)
        return look(self._machine, self._namespace[name])

    # ── where values come from ───────────────────────────────────────────────────────────────

    def _sources(
        self, reads: tuple[str, ...], before: dict[str, Value]
    ) -> dict[str, tuple[int, bool]]:
        machine = self._machine
        heap = machine.heap
        found = {}
        for name in reads:
            bound = self._bound.get(name, -1)
            reach = heap.reach(self._value_before(name, before))
            changed = max(
                (at for at, region in self._mutations if heap.find(region) in reach), default=-1
            )
            latest = max(bound, changed)
            if latest >= 0:
                found[name] = (latest, latest in self._results and changed < bound)
        return found

    def _rebindable(self) -> frozenset[str]:
        """Names that a function of the notebook could rebind if unknown code called it."""
        if self._globals is None:
            self._globals = rebindable(self._cell.tree, list(self._namespace.values()))
        return self._globals

    def _note_lengths(self, node: ast.stmt, found: Finding) -> None:
        for name in found.writes:
            self._lengths.assign(name, None)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and not found.changes:
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id not in found.reads:
                self._lengths.assign(target.id, node.value)


def _task_form(node: ast.stmt) -> _Task | None:
    match node:
        case ast.Assign(targets=targets, value=value) if binds_names(targets):
            return _Task(value, targets)
        case ast.Expr(value=value):
            return _Task(value, [])
        case _:
            return None


def _barrier_reason(node: ast.stmt, effects: Effects) -> str:
    if effects.fence is not None:
        return effects.fence
    if effects.pinned is not None:
        return effects.pinned
    if effects.mutated:
        return next(iter(effects.mutated.values()))
    if isinstance(node, ast.Import | ast.ImportFrom):
        return IMPORTS
    if isinstance(node, _DEFINES):
        return f"defines `{node.name}`"
    return f"`{_first_line(node)}` is not an assignment"


def _item_text(shape: MapShape) -> str:
    return _first_line(shape.value).replace(ITEM, "…")


def _first_line(node: ast.AST) -> str:
    return short(node)[1:-1]
