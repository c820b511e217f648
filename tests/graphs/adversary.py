"""Runs a plan in any order that it allows, on copies, and says what is different from in order."""

from __future__ import annotations

import contextlib
import io
import pickle
import random
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from IPython.core.inputtransformer2 import TransformerManager

from workbench.graphs.cell import Cell, parse_cell
from workbench.graphs.executable import VALUE, ExecutableNode, MapCode, executable
from workbench.graphs.maps import COLLECTED, IN_PLACE, Collect
from workbench.graphs.plan import make_plan
from workbench.protocol.plan import NodeKind, Plan

Namespace = dict[str, Any]
MakeNamespace = Callable[[], Namespace]

transform = TransformerManager().transform_cell
_serial = iter(range(10**9))


def cell_of(source: str) -> Cell:
    return parse_cell(source, transform=transform, first_line=2, filename=f"<cell {next(_serial)}>")


def nothing() -> Namespace:
    return {}


@dataclass
class Outcome:
    """What a run left behind; two are equal where a user could not tell them apart."""

    names: str
    output: str
    error: str | None
    random_state: Any = field(repr=False)


def in_order(cell: Cell, namespace: Namespace) -> Outcome:
    return _observed(
        namespace, lambda: [_run(cell, one.node, namespace) for one in cell.statements]
    )


def out_of_order(cell: Cell, namespace: Namespace, plan: Plan, rng: random.Random) -> Outcome:
    return _observed(namespace, _Adversary(cell, namespace, plan, rng).run)


def check(source: str, make: MakeNamespace = nothing, *, orders: int = 12) -> Plan:
    """Assert that no order that the plan allows can be told from program order."""
    cell = cell_of(source)
    if "import" in source:
        in_order(cell, make())  # the first import of a module may draw random numbers
    expected = in_order(cell, make())
    plan = make_plan(cell, make(), split="auto", cores_available=4)
    for seed in range(orders):
        found = out_of_order(cell, make(), plan, random.Random(seed))
        assert found == expected, f"order {seed} of\n{source}\n{expected}\n{found}\n{plan.edges}"
    return plan


def kinds(plan: Plan) -> list[str]:
    return [node.kind.value for node in plan.nodes]


def beside(plan: Plan) -> set[tuple[int, int]]:
    """Pairs of tasks between which there is no path."""
    after: dict[int, set[int]] = {node.id: set() for node in plan.nodes}
    for edge in sorted(plan.edges, key=lambda one: one.target):
        after[edge.target] |= {edge.source} | after[edge.source]
    tasks = [node.id for node in plan.nodes if node.kind is not NodeKind.BARRIER]
    return {(a, b) for a in tasks for b in tasks if a < b and a not in after[b]}


def _run(cell: Cell, node: Any, namespace: Namespace) -> None:
    exec(cell.compile(node), namespace)


def _observed(namespace: Namespace, run: Callable[[], object]) -> Outcome:
    random.seed(7)
    np.random.seed(7)  # noqa: NPY002  (the shared state is what is watched)
    error = None
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            run()
        except Exception as found:  # noqa: BLE001  (compared)
            error = f"{type(found).__name__}: {found}"
    states = random.getstate(), str(np.random.get_state())  # noqa: NPY002
    return Outcome(_picture(namespace), output.getvalue(), error, states)


# ── running a plan ───────────────────────────────────────────────────────────────────────────


class _Adversary:
    def __init__(self, cell: Cell, namespace: Namespace, plan: Plan, rng: random.Random) -> None:
        self._cell = cell
        self._namespace = namespace
        self._plan = executable(plan, cell)
        self._rng = rng
        self._late = rng.random() < 0.2
        self._committed = 0
        self._results: dict[int, Any] = {}

    def run(self) -> None:
        while self._committed < len(self._plan.nodes):
            ready = [one for one in self._plan.nodes if self._may_start(one)]
            head = self._plan.nodes[self._committed]
            is_barrier = head.node.kind is NodeKind.BARRIER
            done = is_barrier or head.node.id in self._results
            if ready and not (done and (self._late or self._rng.random() < 0.3)):
                one = self._rng.choice(ready)
                self._results[one.node.id] = self._compute(one)
            else:
                assert done
                self._commit(head)
                self._committed += 1

    def _may_start(self, one: ExecutableNode) -> bool:
        if one.node.kind is NodeKind.BARRIER or one.node.id in self._results:
            return False
        return one.node.id >= self._committed and all(
            edge.source < self._committed
            or (edge.source in self._results and self._gives_names(edge.source))
            for edge in self._plan.before[one.node.id]
        )

    def _gives_names(self, source: int) -> bool:
        found = self._plan.nodes[source]
        return found.map is None or found.map.shape.collect not in IN_PLACE

    def _inputs(self, one: ExecutableNode) -> Namespace:
        found: Namespace = {}
        for name in one.node.reads:
            source = one.node.inputs.get(name)
            if source is not None:
                bound = self._results[source]
                if isinstance(bound, _Failed):
                    raise bound.error  # its own commit raises first
                found[name] = bound.names[name]
            elif name in self._namespace:
                found[name] = self._namespace[name]
        return found

    def _compute(self, one: ExecutableNode) -> Any:
        try:
            inputs = self._inputs(one)
            if one.task is not None:
                names = inputs if one.node.inline else _copied(inputs)
                value = eval(one.task.expression, names)
                value = value if one.node.inline else _copied({"": value})[""]
                scratch = {VALUE: value}
                if one.task.bind is not None:
                    exec(one.task.bind, scratch)
                return _Bound({k: v for k, v in scratch.items() if not k.startswith("__")})
            assert one.map is not None
            return self._compute_map(one.map, inputs)
        except Exception as error:  # noqa: BLE001  (raised when its turn comes)
            return _Failed(error)

    def _compute_map(self, code: MapCode, inputs: Namespace) -> Any:
        items = eval(code.items, dict(inputs))
        outcomes: dict[int, Any] = {}
        order = list(range(len(items)))
        self._rng.shuffle(order)
        for index in order:
            copied = _copied({**inputs, "__given__": items[index]})
            given = copied.pop("__given__")
            outcomes[index] = _item(code, copied, given)
        if code.shape.collect in IN_PLACE:
            return _Items(items, [outcomes[index] for index in range(len(items))])
        return self._collected(code, inputs, items, outcomes)

    def _collected(
        self, code: MapCode, inputs: Namespace, items: list[Any], outcomes: dict[int, Any]
    ) -> Any:
        found: Any = {Collect.LIST: list, Collect.SET: set, Collect.DICT: dict}[
            code.shape.collect
        ]()
        for index, item in enumerate(items):
            key = None
            if code.key is not None:
                scratch = {**inputs, VALUE: item}
                exec(code.bind_item, scratch)
                key = eval(code.key, scratch)
            value, _ = outcomes[index].get()
            match code.shape.collect:
                case Collect.LIST:
                    found.append(value)
                case Collect.SET:
                    found.add(value)
                case _:
                    found[key] = value
        if code.finish is not None:
            found = eval(code.finish, {**inputs, COLLECTED: found})
        scratch = {VALUE: found}
        if code.bind is not None:
            exec(code.bind, scratch)
        return _Bound({k: v for k, v in scratch.items() if not k.startswith("__")})

    def _commit(self, one: ExecutableNode) -> None:
        if one.node.kind is NodeKind.BARRIER:
            before = {edge.source for edge in self._plan.before[one.node.id]}
            last = max((n for n in range(one.node.id) if self._is_barrier(n)), default=-1)
            between = set(range(last + 1, one.node.id)) | ({last} if last >= 0 else set())
            assert between <= before, "a barrier waits for all that comes before it"
            _run(self._cell, one.statement.node, self._namespace)
            return
        result = self._results[one.node.id]
        if isinstance(result, _Failed):
            raise result.error
        if isinstance(result, _Bound):
            self._namespace.update(result.names)
            return
        assert one.map is not None
        self._commit_in_place(one.map, result)

    def _is_barrier(self, index: int) -> bool:
        return self._plan.nodes[index].node.kind is NodeKind.BARRIER

    def _commit_in_place(self, code: MapCode, result: _Items) -> None:
        for item, outcome in zip(result.items, result.outcomes, strict=True):
            scratch = {VALUE: item}
            exec(code.bind_item, scratch)
            bound = {k: v for k, v in scratch.items() if not k.startswith("__")}
            self._namespace.update(bound)
            self._namespace.update(outcome.bound)
            value, _ = outcome.get()
            container = self._namespace[code.shape.container]
            match code.shape.collect:
                case Collect.APPEND:
                    container.append(value)
                case Collect.ADD:
                    self._namespace[code.shape.container] = container + value
                case _:
                    assert code.key is not None
                    container[eval(code.key, dict(self._namespace))] = value


@dataclass
class _Failed:
    error: Exception


@dataclass
class _Bound:
    names: Namespace


@dataclass
class _Items:
    items: list[Any]
    outcomes: list[_ItemOutcome]


@dataclass
class _ItemOutcome:
    value: Any
    bound: Namespace
    error: Exception | None = None

    def get(self) -> tuple[Any, Namespace]:
        if self.error is not None:
            raise self.error
        return self.value, self.bound


def _item(code: MapCode, names: Namespace, given: Any) -> _ItemOutcome:
    function = code.item_function(names)
    try:
        value, bound = function(given)
    except Exception as error:  # noqa: BLE001  (raised when its turn comes)
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code is not function.__code__:  # type: ignore[attr-defined]
            trace = trace.tb_next
        local = trace.tb_frame.f_locals if trace is not None else {}
        bound = {name: local[name] for name in code.shape.body_names if name in local}
        return _ItemOutcome(None, bound, error)
    both = _copied({"value": value, "bound": bound})
    return _ItemOutcome(both["value"], both["bound"])


# ── copies, as through a pickle ──────────────────────────────────────────────────────────────


def _copied(names: Namespace) -> Namespace:
    """Copy names as they would cross to another process: functions find the copies."""
    target: Namespace = {}
    functions: list[Any] = []

    class _Pickler(pickle.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            if isinstance(obj, types.FunctionType | types.ModuleType):
                functions.append(obj)
                return len(functions) - 1
            return None

    class _Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            found = functions[pid]
            if isinstance(found, types.ModuleType) or found.__module__ not in {None, "builtins"}:
                return found
            return types.FunctionType(
                found.__code__, target, found.__name__, found.__defaults__, found.__closure__
            )

    stream = io.BytesIO()
    _Pickler(stream, 5).dump(dict(names))
    target.update(_Unpickler(io.BytesIO(stream.getvalue())).load())
    return target


# ── what a user can see ──────────────────────────────────────────────────────────────────────


def _picture(namespace: Namespace) -> str:
    """Return names, values, and which of them are one object or share memory."""
    picture = _Picture()
    names = sorted(name for name in namespace if not name.startswith("__"))
    return "; ".join(f"{name}={picture.draw(namespace[name])}" for name in names)


class _Picture:
    def __init__(self) -> None:
        self._marks: dict[int, int] = {}
        self._keep: list[Any] = []

    def draw(self, value: Any) -> str:
        kind = type(value)
        if kind in {int, float, str, bool, bytes, type(None), complex, range}:
            return repr(value)
        if kind is tuple:
            return f"tuple{self._inside(value)}"
        if kind in {list, dict, set}:
            known = id(value) in self._marks
            mark = self._mark(value)
            return f"#{mark}" if known else f"{kind.__name__}#{mark}{self._inside(value)}"
        if kind is np.ndarray:
            root = value
            while getattr(root, "base", None) is not None:
                root = root.base
            return f"array#{self._mark(root)}{value.dtype}{value.shape}{value.tolist()!r}"
        return self._other(value)

    def _other(self, value: Any) -> str:
        kind = type(value)
        if kind.__module__.startswith("pandas"):
            return f"{kind.__name__}{value.to_dict()}"
        if callable(value) or isinstance(value, types.ModuleType):
            return f"{kind.__name__} {getattr(value, '__name__', '')}"
        if not hasattr(value, "__dict__"):
            text = repr(value)
            return f"{kind.__name__} {'' if ' at 0x' in text else text}"
        return f"{kind.__name__}#{self._mark(value)}{self.draw(dict(sorted(vars(value).items())))}"

    def _inside(self, value: Any) -> str:
        if isinstance(value, dict):
            items = (f"{self.draw(k)}: {self.draw(v)}" for k, v in value.items())
            return "{" + ", ".join(items) + "}"
        return "[" + ", ".join(map(self.draw, value)) + "]"

    def _mark(self, value: Any) -> int:
        self._keep.append(value)
        return self._marks.setdefault(id(value), len(self._marks))
