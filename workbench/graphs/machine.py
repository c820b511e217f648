"""The abstract run of a cell: its memory, its names, and the effects of the statement at hand."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from workbench.graphs.catalogue import Catalogue
from workbench.graphs.values import (
    BOTTOM,
    SHIPPABLE,
    UNKNOWN,
    WITH_CONTENT,
    Heap,
    Kind,
    Value,
)

_SENT: Final = SHIPPABLE | {
    Kind.BOTTOM, Kind.SET, Kind.MODULE, Kind.CALLABLE, Kind.CLOSURE,
}  # fmt: skip
NOTHING: Final = 1_000_000
_PASSES: Final = 12
"""More rounds than this to learn what a loop does, and it counts as unknown."""


@dataclass(slots=True)
class Effects:
    """What a statement may do, beyond computing a value.

    Attributes:
        reads: Names of the namespace that it reads, in order.
        writes: Names of the namespace that it binds or deletes.
        mutated: Regions that it changes, with what does so.
        unproven: It may do anything at all; the first reason why.
        fence: It must keep its place among all others (it reads the clock); why.
        pinned: It does nothing but what is listed here, yet only the home can do it; why.
        poison: It changes what library names mean, for all that follows; why.
        work: It does more than handle a few scalars.
        heavy: It calls something that may be worth a task of its own.
    """

    reads: dict[str, None] = field(default_factory=dict)
    writes: dict[str, None] = field(default_factory=dict)
    mutated: dict[int, str] = field(default_factory=dict)
    unproven: str | None = None
    fence: str | None = None
    pinned: str | None = None
    poison: str | None = None
    work: bool = False
    heavy: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class Frame:
    """The local names of a running function or comprehension.

    Attributes:
        local: Names that belong to it; all others are looked up outside.
        parent: The enclosing function's frame; None for the namespace.
        values: What each local name may be. Every assignment in the body counts at once.
        comprehension: It is a comprehension's: `:=` binds outside.
        result: What the function may return.
        version: Grows with everything that is learnt of `values` and `result`.
    """

    local: frozenset[str]
    parent: Frame | None
    values: dict[str, Value] = field(default_factory=dict)
    comprehension: bool = False
    result: Value = BOTTOM
    version: int = 0


@dataclass(eq=False, slots=True, kw_only=True)
class Closure:
    """A function whose source is known.

    Attributes:
        node: Its definition.
        parent: The frame in which it was defined; None for the namespace.
        defaults: Values of its last positional parameters' defaults.
        keyword_defaults: Of its keyword-only ones.
        local: Names that it binds itself.
        barred: Why it cannot be followed (a generator, a coroutine…), or None.
    """

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    parent: Frame | None
    defaults: tuple[Value, ...] = ()
    keyword_defaults: dict[str, Value] = field(default_factory=dict)
    local: frozenset[str] = frozenset()
    barred: str | None = None

    def held(self) -> list[Value]:
        """Return what travels with it: its defaults, and the names that it closes over."""
        values = [*self.defaults, *self.keyword_defaults.values()]
        frame = self.parent
        while frame is not None:
            values += frame.values.values()
            frame = frame.parent
        return values


Invoke = Callable[["Machine", Closure, list[Value], dict[str, Value], ast.AST], Value]


@dataclass(eq=False, slots=True, kw_only=True)
class Machine:
    """One analysis.

    Args:
        namespace: The notebook's names; only looked at.
        catalogue: What library calls do.
        look: Finds the value of a live object (`live.look`).
        invoke: Follows a call of a notebook function (`closures.invoke`).
    """

    namespace: Mapping[str, Any]
    catalogue: Catalogue
    look: Callable[[Machine, Any], Value]
    invoke: Invoke
    heap: Heap = field(default_factory=Heap)
    names: dict[str, Value] = field(default_factory=dict)
    effects: Effects = field(default_factory=Effects)
    statement: int = 0
    line: int = 0
    start: int = 0
    weak: bool = False
    names_version: int = 0
    stack: list[str] = field(default_factory=list)
    havoc: bool = False
    closures: dict[tuple[int, int], Closure] = field(default_factory=dict)
    running: dict[tuple[object, ...], int] = field(default_factory=dict)
    unfinished: int = NOTHING
    memo: dict[tuple[object, ...], tuple[int, Value]] = field(default_factory=dict)
    live: dict[int, Value] = field(default_factory=dict)
    anchors: dict[int, ast.Call] = field(default_factory=dict)

    def begin(self, statement: int, line: int) -> None:
        """Start a statement: what is made from here on is its own."""
        self.statement = statement
        self.line = line
        self.start = self.heap.now
        self.retry()

    def retry(self) -> None:
        """Look at the statement anew: nothing is known of its effects."""
        self.weak = False
        self.stack.clear()
        self.memo.clear()
        self.running.clear()
        self.unfinished = NOTHING
        self.effects = Effects()

    # ── what was learnt ──────────────────────────────────────────────────────────────────────

    def placed(self, text: str, node: ast.AST) -> str:
        """Return a reason with its place, unless that is the statement's own first line."""
        line = getattr(node, "lineno", self.line)
        if self.stack:
            return f"{text} (in {self.stack[-1]}, line {line})"
        return text if line == self.line else f"{text} (line {line})"

    def unproven(self, node: ast.AST, text: str) -> Value:
        """Note that anything may happen here."""
        if self.effects.unproven is None:
            self.effects.unproven = self.placed(text, node)
        return UNKNOWN

    def pin(self, node: ast.AST, text: str) -> None:
        """Note that only the home can do this, and that it does nothing else."""
        if self.effects.pinned is None:
            self.effects.pinned = self.placed(text, node)

    def mutate(self, value: Value, node: ast.AST, text: str) -> None:
        """Note that the object of a value changes."""
        if value.region is not None:
            region = self.heap.find(value.region)
            self.effects.mutated.setdefault(region, self.placed(text, node))

    def is_fresh(self, value: Value, since: int) -> bool:
        """Whether all that can be reached from a value was made since then."""
        return all(self.heap.birth(region) >= since for region in self.heap.reach(value))

    def stays(self, value: Value) -> Kind | None:
        """Return the kind of what a value holds that cannot be sent to a worker, or None."""
        pending, seen = [value], set[int]()
        while pending:
            for one in self.heap.parts(pending.pop()):
                if one.kind is Kind.CLOSURE and id(one.ref) not in seen:
                    seen.add(id(one.ref))
                    pending += one.ref.held()
                elif one.kind not in _SENT:
                    return one.kind
        return None

    # ── memory ───────────────────────────────────────────────────────────────────────────────

    def make(self, kind: Kind, node: ast.AST, *, ref: Any = None, tag: object = 0) -> Value:
        """Make a new object at a place in the code."""
        region = self.heap.region((self.statement, id(node), tag))
        if kind in WITH_CONTENT:
            self.heap.store(region, BOTTOM)
        elif kind in {Kind.FRAME, Kind.ESTIMATOR}:
            self.heap.store(region, Value(Kind.SCALAR))
        return Value(kind, region=region, ref=ref)

    def make_list(self, content: Value, node: ast.AST, tag: object = 0) -> Value:
        """Make a list at a place in the code."""
        made = self.make(Kind.LIST, node, tag=tag)
        assert made.region is not None
        self.heap.store(made.region, content)
        return made

    def _knowledge(self, frame: Frame | None) -> int:
        known = self.names_version + self.heap.version
        while frame is not None:
            known += frame.version
            frame = frame.parent
        return known

    # ── names ────────────────────────────────────────────────────────────────────────────────

    def lookup(self, name: str, frame: Frame | None) -> Value:
        """Return what a name is here."""
        while frame is not None:
            if name in frame.local:
                return frame.values.get(name, BOTTOM)
            frame = frame.parent
        self.effects.reads.setdefault(name)
        return self.namespace_value(name)

    def namespace_value(self, name: str) -> Value:
        """Return what a name of the namespace (or of Python's own) is."""
        found = self.names.get(name)
        if found is None:
            live = name in self.namespace
            found = self.look(self, self.namespace[name]) if live else self.builtin(name)
            if self.havoc and live:
                self.heap.forget_value(found)
            self.names[name] = found
        return found

    def builtin(self, name: str) -> Value:
        """Return what a name is if nobody bound it."""
        path = f"builtins.{name}"
        if self.catalogue.is_genuine(path):
            return Value(Kind.CALLABLE, ref=path)
        return UNKNOWN

    def bind(self, name: str, value: Value, frame: Frame | None) -> None:
        """Bind a name where Python would."""
        innermost = frame
        while frame is not None:
            if name in frame.local:
                joined = self.heap.join(frame.values.get(name, BOTTOM), value)
                if frame.values.get(name) != joined:
                    frame.values[name] = joined
                    frame.version += 1
                    # Other functions may see an outer function's names.
                    self.names_version += frame is not innermost
                return
            frame = frame.parent
        self.effects.writes.setdefault(name)
        if any(one.kind is Kind.ITER for one in self.heap.parts(value)):
            # It runs later, when names may mean something else.
            value = UNKNOWN
        if self.weak or self.stack:
            value = self.heap.join(self._before(name), value)
        if self.names.get(name) != value:
            self.names[name] = value
            self.names_version += 1

    def _before(self, name: str) -> Value:
        """Return what a name is already; nothing where it would be bound for the first time."""
        nobody = name not in self.names and name not in self.namespace
        missing = nobody and not self.catalogue.is_genuine(f"builtins.{name}")
        return BOTTOM if missing else self.namespace_value(name)

    def unbind(self, name: str) -> None:
        """Delete a name of the namespace."""
        self.effects.writes.setdefault(name)
        self.names[name] = UNKNOWN

    def settle(self, run: Callable[[], object], node: ast.AST, frame: Frame | None) -> None:
        """Run until nothing new is learnt of a frame, and of what all can see."""
        for _ in range(_PASSES):
            before = self._knowledge(frame)
            run()
            if before == self._knowledge(frame):
                return
        self.unproven(node, "its loops are too involved to follow")
