"""What live objects of the notebook are, found without running any of their code."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from workbench.graphs.expressions import why_barred
from workbench.graphs.machine import Closure, Frame, Machine
from workbench.graphs.scopes import function_bindings
from workbench.graphs.sources import definition
from workbench.graphs.values import (
    BOTTOM,
    BYTES,
    INT,
    NONE,
    NUM,
    RANGE,
    SCALAR,
    SHIPPABLE,
    STR,
    UNKNOWN,
    Kind,
    Value,
    tuple_all,
    tuple_of,
)

_SCALAR_TYPES: Final[dict[type, Value]] = {
    int: INT, bool: INT, float: NUM, complex: NUM, str: STR, bytes: BYTES, type(None): NONE,
    range: RANGE, slice: SCALAR, type(...): SCALAR,
}  # fmt: skip
_CONTAINERS: Final[dict[type, Kind]] = {list: Kind.LIST, dict: Kind.DICT, set: Kind.SET}
_LONGEST: Final = 200_000
"""A list of plain values longer than this is not looked through: 4 ms."""
_NESTED: Final = 2_000
"""As `_LONGEST`, for a container of containers."""
_SHORT_TUPLE: Final = 16
_DTYPE_KINDS: Final = "biufcSUmM"
_PLAIN_NUMPY: Final = {"b": INT, "i": INT, "u": INT, "f": NUM, "c": NUM}


def look(machine: Machine, target: Any) -> Value:
    """Return what a live object is: by its exact type, without asking the object itself."""
    scalar = _SCALAR_TYPES.get(type(target))
    if scalar is not None:
        return scalar
    known = machine.live.get(id(target))
    if known is None:
        # A container that holds itself is unknown inside.
        machine.live[id(target)] = UNKNOWN
        known = machine.live[id(target)] = _look(machine, target)
    return known


def _look(machine: Machine, target: Any) -> Value:
    kind = type(target)
    if kind in {list, dict, set, tuple}:
        return _container(machine, target)
    if kind is ModuleType:
        name = str(vars(target).get("__name__"))
        known = sys.modules.get(name) is target and machine.catalogue.is_module(name)
        return Value(Kind.MODULE, ref=name) if known else UNKNOWN
    if kind is FunctionType and target.__globals__ is machine.namespace:
        closure = closure_of(machine, target)
        return UNKNOWN if closure is None else Value(Kind.CLOSURE, ref=closure)
    if kind in {FunctionType, BuiltinFunctionType} or issubclass(kind, type):
        return _callable(machine, target)
    return _library_object(machine, target)


def _callable(machine: Machine, target: Any) -> Value:
    path = machine.catalogue.path_of(target)
    return UNKNOWN if path is None else Value(Kind.CALLABLE, ref=path)


def _library_object(machine: Machine, target: Any) -> Value:
    kind = type(target)
    root = kind.__module__.partition(".")[0] if type(kind.__module__) is str else ""
    match root:
        case "numpy":
            return _numpy(machine, target)
        case "pandas" if kind.__name__ in {"DataFrame", "Series"}:
            return _pandas(machine, target)
        case "sklearn":
            return _estimator(machine, target)
        case _:
            return UNKNOWN


def _is_from(target: Any, module: str) -> bool:
    """Whether an object's exact type is the one that a loaded module has under its name."""
    loaded = sys.modules.get(module)
    kind = type(target)
    return loaded is not None and vars(loaded).get(kind.__name__) is kind


def _numpy(machine: Machine, target: Any) -> Value:
    kind = type(target)
    if kind.__name__ in {"ufunc", "_ArrayFunctionDispatcher"}:
        return _callable(machine, target)
    if kind.__name__ in {"Generator", "RandomState"} and _is_from(target, "numpy.random"):
        held = "bit_generator" if kind.__name__ == "Generator" else "_bit_generator"
        source = getattr(target, held)
        return Value(Kind.RNG, region=machine.heap.region(("live", id(source)), live=True))
    if not _is_from(target, "numpy"):
        return UNKNOWN
    if kind.__name__ == "ndarray":
        return _array(machine, target)
    if kind.__name__.startswith("dtype") or not hasattr(target, "dtype"):
        return UNKNOWN
    return _PLAIN_NUMPY.get(target.dtype.kind, SCALAR)


def _array(machine: Machine, target: Any) -> Value:
    if target.dtype.kind not in _DTYPE_KINDS or target.dtype.fields is not None:
        return UNKNOWN
    if not (target.flags.c_contiguous or target.flags.f_contiguous):
        # A copy would lie otherwise in memory, and sums could round otherwise.
        return UNKNOWN
    root = target
    while type(root) in {type(target), memoryview}:
        owner = root.obj if type(root) is memoryview else root.base
        if owner is None:
            break
        root = owner
    if type(root) not in {type(target), bytes, bytearray}:
        return UNKNOWN  # the memory is somebody else's
    return Value(Kind.ARRAY, region=machine.heap.region(("live", id(root)), live=True))


def _pandas(machine: Machine, target: Any) -> Value:
    if not _is_from(target, "pandas"):
        return UNKNOWN
    manager = target.__dict__.get("_mgr")
    blocks = getattr(manager, "blocks", None)
    if not isinstance(blocks, tuple):
        return UNKNOWN
    if any(getattr(block.dtype, "kind", "O") == "O" and str(block.dtype) == "object"
           for block in blocks):  # fmt: skip
        return UNKNOWN  # its columns may hold anything
    # Frames may share memory among themselves and with arrays: one region for all of them.
    region = machine.heap.region(("live", "pandas"), live=True)
    machine.heap.store(region, SCALAR)
    return Value(Kind.FRAME, region=region)


def _estimator(machine: Machine, target: Any) -> Value:
    path = machine.catalogue.path_of(type(target))
    rule = machine.catalogue.calls.get(path) if path is not None else None
    if rule is None or rule.result != "estimator":
        return UNKNOWN
    state = object.__getattribute__(target, "__dict__")
    seed = type(state.get("random_state")) is int
    draws = rule.seed or any(
        name in state and str(state[name]) not in harmless
        for name, harmless in rule.seed_unless.items()
        if type(state.get(name)) in _SCALAR_TYPES
    )
    if draws and not seed:
        return UNKNOWN
    if state.get("n_jobs") not in {None, 1} or state.get("verbose", 0) not in {0, None}:
        return UNKNOWN
    region = machine.heap.region(("live", id(target)), live=True)
    machine.heap.store(region, SCALAR)
    value = Value(Kind.ESTIMATOR, region=region, ref=rule.keeps)
    for held in state.values():
        inner = look(machine, held)
        for one in machine.heap.reach(inner):
            machine.heap.union(region, one)
        plain = type(held).__module__.partition(".")[0] == "sklearn" or inner.kind in SHIPPABLE
        if not plain:
            return UNKNOWN
    return value


def _container(machine: Machine, target: Any) -> Value:
    heap = machine.heap
    kind = type(target)
    if kind is tuple:
        if len(target) <= _SHORT_TUPLE:
            return tuple_of(*(look(machine, one) for one in target))
        return tuple_all(_join_all(machine, target))
    region = heap.region(("live", id(target)), live=True)
    content = _join_all(machine, list(target.values()) if kind is dict else target)
    heap.store(region, content, _join_all(machine, target) if kind is dict else None)
    return Value(_CONTAINERS[kind], region=region)


def _join_all(machine: Machine, items: Iterable[Any]) -> Value:
    held = items if isinstance(items, list | tuple) else list(items)
    if len(held) > _LONGEST:
        return UNKNOWN
    types = set(map(type, held))
    joined = BOTTOM
    for kind in sorted(types, key=lambda one: one.__name__):
        joined = machine.heap.join(joined, _SCALAR_TYPES.get(kind, BOTTOM))
    if types <= set(_SCALAR_TYPES):
        return joined
    if len(held) > _NESTED:
        return UNKNOWN
    for one in held:
        joined = machine.heap.join(joined, look(machine, one))
    return joined


# ── functions of the notebook ────────────────────────────────────────────────────────────────


def closure_of(machine: Machine, function: FunctionType) -> Closure | None:
    """Return a live function with its source; None where the source cannot be trusted."""
    node = definition(function.__code__)
    if node is None:
        return None
    code = function.__code__
    cells = function.__closure__ or ()
    parent = Frame(local=frozenset(code.co_freevars), parent=None)
    for name, cell in zip(code.co_freevars, cells, strict=True):
        try:
            parent.values[name] = look(machine, cell.cell_contents)
        except ValueError:  # the cell is empty
            parent.values[name] = UNKNOWN
    named = function.__kwdefaults__ or {}
    return Closure(
        name=function.__name__,
        node=node,
        parent=parent if code.co_freevars else None,
        defaults=tuple(look(machine, one) for one in function.__defaults__ or ()),
        keyword_defaults={name: look(machine, one) for name, one in named.items()},
        local=frozenset(function_bindings(node).bound),
        barred=why_barred(node),
    )
