"""Prove that the items of a loop can be computed beside one another."""

from __future__ import annotations

import ast
from typing import Final

from workbench.graphs.builtin_calls import hash_key, store_in_set
from workbench.graphs.expressions import assign, evaluate
from workbench.graphs.machine import Frame, Machine
from workbench.graphs.maps import COLLECTED, Collect, MapShape
from workbench.graphs.operators import iterate
from workbench.graphs.values import BOTTOM, NUMBERS, WITH_CONTENT, Kind, Value

_HELD: Final = WITH_CONTENT | {Kind.TUPLE, Kind.RANGE, Kind.ARRAY, Kind.STR, Kind.ITER}


def prove_map(  # noqa: PLR0911  (one for each reason)
    machine: Machine, node: ast.stmt, shape: MapShape
) -> bool:
    """Prove a map, and bind the names that its statement binds.

    Where the proof fails, names and effects are to be put back as they were.
    """
    if not all(_is_builtin(machine, name) for name in shape.library) or _carries_over(shape):
        return False
    frame = _enter(machine, shape)
    if frame is None:
        return False
    effects, since = machine.effects, machine.heap.now
    before, effects.mutated = effects.mutated, {}
    if any(machine.heap.birth(one) < machine.start for one in before):
        return False
    value, key, seen = _run_item(machine, node, shape, frame)
    if effects.unproven or effects.fence or effects.pinned or effects.writes or not effects.heavy:
        return False
    if any(machine.heap.birth(one) < since for one in effects.mutated):
        return False
    # A comprehension's names are its own; a loop's are the namespace's, which functions see.
    if shape.loop and seen & {*shape.target_names, *shape.body_names}:
        return False
    if shape.container is not None and _reads_container(machine, shape.container, seen):
        return False
    local = [frame.values.get(name, BOTTOM) for name in shape.body_names]
    for one in (value, key, *local):
        if not (machine.is_fresh(one, since) and machine.heap.shippable(one)):
            return False
    effects.mutated |= before
    return _collect(machine, node, shape, value, key, frame)


def _is_builtin(machine: Machine, name: str) -> bool:
    return machine.lookup(name, None) == Value(Kind.CALLABLE, ref=f"builtins.{name}")


def _enter(machine: Machine, shape: MapShape) -> Frame | None:
    """Look at what is looped over; None for what cannot be listed beforehand."""
    names = frozenset({*shape.target_names, *shape.body_names})
    frame = Frame(local=names, parent=None, comprehension=True)
    effects = machine.effects
    for one in shape.generators:
        iterable = evaluate(machine, one.iter, None)
        if iterable.kind not in _HELD or not machine.heap.readable(iterable) or effects.pinned:
            return None
        if shape.container is not None:
            container = machine.namespace_value(shape.container)
            if machine.heap.reach(container) & machine.heap.reach(iterable):
                return None
        assign(machine, one.target, iterate(machine, iterable, one.iter), frame)
        effects.pinned = None  # the home lists the items: in a set's own order
    return None if effects.unproven else frame


def _run_item(
    machine: Machine, node: ast.stmt, shape: MapShape, frame: Frame
) -> tuple[Value, Value, set[str]]:
    """Run one item: return its value, its key, and the names of the namespace that it reads."""
    value = key = BOTTOM

    def once() -> None:
        nonlocal value, key
        for one in shape.body:
            assert isinstance(one, ast.Assign)
            bound = evaluate(machine, one.value, frame)
            for target in one.targets:
                assign(machine, target, bound, frame)
        value = evaluate(machine, shape.value, frame)
        if shape.key is not None:
            key = evaluate(machine, shape.key, frame)

    effects = machine.effects
    before, effects.reads, effects.heavy = effects.reads, {}, False
    machine.settle(once, node, frame)
    seen = set(effects.reads)
    effects.reads = before | effects.reads
    return value, key, seen


def _reads_container(machine: Machine, container: str, seen: set[str]) -> bool:
    """Whether an item can see what the others put into the container."""
    reached = machine.heap.reach(machine.namespace_value(container))
    return container in seen or any(
        reached & machine.heap.reach(machine.namespace_value(name)) for name in seen
    )


def _carries_over(shape: MapShape) -> bool:
    """Whether an item reads what the one before it has bound."""
    bound = set(shape.target_names)
    every = {*bound, *shape.body_names}
    for one in [*shape.body, ast.Expr(shape.value)]:
        assert isinstance(one, ast.Assign | ast.Expr)
        value = one.value
        uses = {
            inner.id
            for inner in ast.walk(value)
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
        }
        if uses & (every - bound):
            return True
        if isinstance(one, ast.Assign):
            for target in one.targets:
                bound |= {x.id for x in ast.walk(target) if isinstance(x, ast.Name)}
    return False


def _collect(
    machine: Machine, node: ast.stmt, shape: MapShape, value: Value, key: Value, frame: Frame
) -> bool:
    match shape.collect:
        case Collect.APPEND | Collect.KEYED | Collect.ADD:
            return _collect_in_place(machine, node, shape, value, key, frame)
        case Collect.DICT:
            made = machine.make(Kind.DICT, node, tag="map")
            hash_key(machine, key, node)
            assert made.region is not None
            machine.heap.store(made.region, value, key)
        case Collect.SET:
            made = machine.make(Kind.SET, node, tag="map")
            store_in_set(machine, made, value, node)
            machine.effects.pinned = None  # the home puts it together
        case Collect.LIST:
            made = machine.make_list(value, node, tag="map")
    if shape.finish is not None:
        # A generator's consumer could raise before a later item does.
        if set(shape.library) - {"list", "tuple"} and value.kind not in NUMBERS:
            return False
        hole = Frame(local=frozenset({COLLECTED}), parent=None, values={COLLECTED: made})
        made = evaluate(machine, shape.finish, hole)
    effects = machine.effects
    if effects.unproven or effects.pinned or effects.fence or effects.writes:
        return False
    if not machine.is_fresh(made, machine.start) or not _returns(machine, made, shape):
        return False
    for target in shape.targets:
        assign(machine, target, made, None)
    return True


def _returns(machine: Machine, made: Value, shape: MapShape) -> bool:
    # A set is put together by the home, in order, and so is as it should be.
    return (made.kind is Kind.SET and shape.finish is None) or machine.heap.shippable(made)


def _collect_in_place(
    machine: Machine, node: ast.stmt, shape: MapShape, value: Value, key: Value, frame: Frame
) -> bool:
    assert shape.container is not None
    container = machine.namespace_value(shape.container)
    if shape.collect is Collect.ADD:
        if container.kind not in NUMBERS or value.kind not in NUMBERS:
            return False
        machine.bind(shape.container, machine.heap.join(container, value), None)
    else:
        wanted = Kind.LIST if shape.collect is Collect.APPEND else Kind.DICT
        if container.kind is not wanted or container.region is None:
            return False
        if shape.collect is Collect.KEYED:
            hash_key(machine, key, node)
        machine.mutate(container, node, f"fills `{shape.container}`")
        machine.heap.store(container.region, value, key if shape.key is not None else None)
    if machine.effects.unproven:
        return False
    machine.weak = True  # there may be no item at all
    for name in (*shape.target_names, *shape.body_names):
        machine.bind(name, frame.values.get(name, BOTTOM), None)
    machine.weak = False
    return True
