"""What operators, indexing, iteration, truth tests and formatting do to values of known kinds."""

from __future__ import annotations

import ast
from typing import Final

from workbench.graphs.machine import Machine
from workbench.graphs.values import (
    BOTTOM,
    BYTES,
    INT,
    NUM,
    NUMBERS,
    RANGE,
    SCALAR,
    SCALARS,
    SELF_EQUAL,
    STR,
    UNKNOWN,
    WITH_CONTENT,
    Kind,
    Value,
    tuple_all,
    tuple_of,
)

_DATA: Final = SCALARS | WITH_CONTENT | {
    Kind.ARRAY, Kind.FRAME, Kind.TUPLE, Kind.PLAIN, Kind.BOTTOM,
}  # fmt: skip
_SET_OPERATORS: Final = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)


def is_data(machine: Machine, value: Value) -> bool:
    """Whether operators on it run nothing but Python's, numpy's and pandas' own code."""
    return all(one.kind in _DATA for one in machine.heap.parts(value))


def test(machine: Machine, value: Value, node: ast.AST) -> None:
    """Note what asking a value for its truth does."""
    if value.kind is Kind.UNKNOWN:
        machine.unproven(node, f"asks {_text(node)} for its truth, and its type is not known")


def binary(  # noqa: PLR0911  (a table)
    machine: Machine, left: Value, op: ast.operator, right: Value, node: ast.AST
) -> Value:
    """Return the value of `left op right`."""
    kinds = {left.kind, right.kind}
    if Kind.BOTTOM in kinds:
        return BOTTOM
    if not kinds <= SCALARS:
        machine.effects.work = True
    if isinstance(op, ast.Mod) and left.kind in {Kind.STR, Kind.SCALAR, Kind.BYTES}:
        return formatted(machine, right, node)
    same = left.kind if left.kind is right.kind else None
    if same is Kind.LIST and isinstance(op, ast.Add):
        joined = machine.heap.join(iterate(machine, left, node), iterate(machine, right, node))
        return machine.make_list(joined, node)
    if not (is_data(machine, left) and is_data(machine, right)):
        return machine.unproven(node, f"{_text(node)} uses {_worse(machine, left, right)}")
    if Kind.PLAIN in kinds:
        return UNKNOWN
    if Kind.FRAME in kinds:
        return machine.make(Kind.FRAME, node)
    if Kind.ARRAY in kinds:
        # An array of objects would keep a dict or a set as it is.
        known = not kinds & {Kind.DICT, Kind.SET}
        return machine.make(Kind.ARRAY, node) if known else UNKNOWN
    if kinds <= SCALARS:
        return _scalars(left, op, right)
    return _containers(machine, left, op, right, node)


def _scalars(left: Value, op: ast.operator, right: Value) -> Value:
    kinds = {left.kind, right.kind}
    if kinds <= NUMBERS:
        whole = kinds == {Kind.INT} and not isinstance(op, ast.Div | ast.Pow)
        return INT if whole else NUM
    if Kind.STR in kinds and isinstance(op, ast.Add | ast.Mult):
        return STR
    return SCALAR


def _containers(
    machine: Machine, left: Value, op: ast.operator, right: Value, node: ast.AST
) -> Value:
    kinds = {left.kind, right.kind}
    if kinds == {Kind.TUPLE} and isinstance(op, ast.Add):
        if left.items is not None and right.items is not None:
            return tuple_of(*left.items, *right.items)
        heap = machine.heap
        return tuple_all(heap.join(heap.any_item(left), heap.any_item(right)))
    if isinstance(op, ast.Mult) and Kind.INT in kinds and kinds & {Kind.LIST, Kind.TUPLE}:
        held = left if right.kind is Kind.INT else right
        content = iterate(machine, held, node)
        return machine.make_list(content, node) if held.kind is Kind.LIST else tuple_all(content)
    if len(kinds) == 1 and isinstance(op, _SET_OPERATORS) and kinds <= {Kind.SET, Kind.DICT}:
        made = machine.make(left.kind, node)
        for one in (left, right):
            assert one.region is not None
            assert made.region is not None
            keys = machine.heap.keys(one.region)
            machine.heap.store(made.region, machine.heap.content(one.region), keys)
        return made
    # With a numpy number a list becomes an array; anything else raises.
    return UNKNOWN


def augmented(machine: Machine, old: Value, op: ast.operator, new: Value, node: ast.AST) -> Value:
    """Return the value of a name after `name op= new`; a mutable object changes in place."""
    if old.kind in SCALARS | {Kind.TUPLE, Kind.BOTTOM}:
        return binary(machine, old, op, new, node)
    if old.kind is Kind.LIST and isinstance(op, ast.Add):
        machine.effects.work = True
        machine.mutate(old, node, f"{_text(node)} changes the list in place")
        assert old.region is not None
        machine.heap.store(old.region, iterate(machine, new, node))
        return old
    if old.kind in {Kind.ARRAY, Kind.FRAME} and is_data(machine, new):
        machine.effects.work = True
        machine.mutate(old, node, f"{_text(node)} changes the array in place")
        return old
    return machine.unproven(node, f"{_text(node)} uses {_worse(machine, old, new)}")


def unary(machine: Machine, op: ast.unaryop, value: Value, node: ast.AST) -> Value:
    """Return the value of `op value`."""
    if isinstance(op, ast.Not):
        test(machine, value, node)
        return INT
    if value.kind in SCALARS or value.kind is Kind.BOTTOM:
        return value if value.kind in NUMBERS else SCALAR
    machine.effects.work = True
    if value.kind in {Kind.ARRAY, Kind.FRAME} and is_data(machine, value):
        return machine.make(value.kind, node)
    return machine.unproven(node, f"{_text(node)} uses {_worse(machine, value)}")


def compare(  # noqa: C901, PLR0911  (a table)
    machine: Machine, left: Value, op: ast.cmpop, right: Value, nodes: tuple[ast.expr, ast.expr]
) -> Value:
    """Return the value of one comparison."""
    node = nodes[1]
    constants = [one for one in nodes if isinstance(one, ast.Constant)]
    if isinstance(op, ast.Is | ast.IsNot):
        if not constants:
            machine.pin(node, "compares identities, which a copy does not keep")
        return INT
    if {left.kind, right.kind} <= SCALARS:
        return INT
    machine.effects.work = True
    if not (is_data(machine, left) and is_data(machine, right)):
        machine.unproven(node, f"compares {_worse(machine, left, right)}")
        return UNKNOWN
    if Kind.PLAIN in {left.kind, right.kind}:
        machine.pin(node, "compares what may be NaN, which equals only itself")
        return UNKNOWN
    if not isinstance(op, ast.In | ast.NotIn):
        for kind in (Kind.FRAME, Kind.ARRAY):
            if kind in {left.kind, right.kind}:
                return machine.make(kind, node)
    elif right.kind in {Kind.ARRAY, Kind.FRAME, Kind.STR, Kind.RANGE}:
        return INT
    if not (constants or self_equal(machine, left)):
        machine.pin(node, "compares what may be NaN, which equals only itself")
    return INT


def self_equal(machine: Machine, value: Value) -> bool:
    """Whether equality of all that it holds does not depend on identity, as NaN's does."""
    heap = machine.heap
    inner = {*WITH_CONTENT, Kind.TUPLE, Kind.RANGE}
    return all(one.kind in SELF_EQUAL or one.kind in inner for one in heap.parts(value))


def subscript(  # noqa: C901, PLR0911  (a table)
    machine: Machine, base: Value, index: Value, node: ast.Subscript
) -> Value:
    """Return the value of `base[index]`."""
    heap = machine.heap
    sliced = isinstance(node.slice, ast.Slice)
    match base.kind:
        case Kind.BOTTOM | Kind.NONE | Kind.SET | Kind.ITER:
            return BOTTOM
        case Kind.STR | Kind.SCALAR | Kind.INT | Kind.NUM:
            return Value(base.kind)
        case Kind.BYTES:
            return BYTES if sliced else INT
        case Kind.RANGE:
            return RANGE if sliced else INT
        case Kind.TUPLE:
            return _tuple_item(machine, base, node)
        case Kind.LIST if index.kind in SCALARS | {Kind.ARRAY}:
            assert base.region is not None
            content = heap.content(base.region)
            return machine.make_list(content, node) if sliced else content
        case Kind.DICT if is_data(machine, index) and is_data(machine, _keys(machine, base)):
            if not (isinstance(node.slice, ast.Constant) or self_equal(machine, index)):
                machine.pin(node, "looks up what may be NaN, which equals only itself")
            assert base.region is not None
            return heap.content(base.region)
        case Kind.ARRAY | Kind.FRAME if is_data(machine, index) and is_data(machine, base):
            machine.effects.work = machine.effects.work or not _is_position(node.slice)
            return _array_item(machine, base, index, node)
        case Kind.RESULT:
            return Value(Kind.ARRAY, region=base.region)
        case Kind.PLAIN if is_data(machine, index) and is_data(machine, base):
            return base
        case _:
            return machine.unproven(node, f"{_text(node)} indexes {base.kind.value}")


def _keys(machine: Machine, value: Value) -> Value:
    assert value.region is not None
    return machine.heap.keys(value.region)


def _is_position(index: ast.expr) -> bool:
    return isinstance(index, ast.Constant | ast.Name)


def _tuple_item(machine: Machine, base: Value, node: ast.Subscript) -> Value:
    index = node.slice
    at: object = None
    match index:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            at = -number
        case ast.Constant(value=value):
            at = value
        case _:
            pass
    if base.items is not None and isinstance(at, int):
        return base.items[at] if -len(base.items) <= at < len(base.items) else BOTTOM
    joined = machine.heap.any_item(base)
    return tuple_all(joined) if isinstance(index, ast.Slice) else joined


def _array_item(machine: Machine, base: Value, index: Value, node: ast.Subscript) -> Value:
    # Indexing by a list or a mask copies; anything else may be a view.
    mask = isinstance(node.slice, ast.Compare) or (
        isinstance(node.slice, ast.UnaryOp) and isinstance(node.slice.op, ast.Invert)
    )
    if base.kind is Kind.ARRAY and (mask or index.kind is Kind.LIST):
        return machine.make(Kind.ARRAY, node)
    return base


def iterate(  # noqa: C901, PLR0911  (a table)
    machine: Machine, value: Value, node: ast.AST
) -> Value:
    """Return what a loop over a value gives each time."""
    heap = machine.heap
    match value.kind:
        case Kind.BOTTOM | Kind.INT | Kind.NUM | Kind.NONE:
            return BOTTOM  # raises
        case Kind.RANGE:
            return INT
        case Kind.STR | Kind.SCALAR:
            return Value(value.kind)
        case Kind.BYTES:
            return INT
        case Kind.TUPLE:
            return heap.any_item(value)
        case Kind.LIST | Kind.DICT | Kind.SET:
            assert value.region is not None
            if value.kind is Kind.SET:
                _iterate_set(machine, value, node)
            is_dict = value.kind is Kind.DICT
            return heap.keys(value.region) if is_dict else heap.content(value.region)
        case Kind.ITER:
            machine.mutate(value, node, "moves an iterator on")
            return value.elem or BOTTOM
        case Kind.ARRAY | Kind.RESULT:
            return Value(Kind.ARRAY, region=value.region)
        case Kind.PLAIN if is_data(machine, value):
            return value
        case Kind.FRAME:
            return SCALAR if is_data(machine, value) else machine.unproven(node, "loops over it")
        case _:
            return machine.unproven(node, f"loops over {value.kind.value}")


def _iterate_set(machine: Machine, value: Value, node: ast.AST) -> None:
    assert value.region is not None
    numbers = machine.heap.content(value.region).kind in {Kind.INT, Kind.BOTTOM}
    if not (numbers and machine.is_fresh(value, machine.start)):
        machine.pin(node, "depends on the order of a set, which a copy does not keep")


def formatted(machine: Machine, value: Value, node: ast.AST) -> Value:
    """Return the text of a value."""
    if value.kind in SCALARS or value.kind is Kind.BOTTOM:
        return STR
    machine.effects.work = True
    if not is_data(machine, value):
        machine.unproven(node, f"formats {_worse(machine, value)}")
    elif any(one.kind not in SCALARS | {Kind.TUPLE} for one in machine.heap.parts(value)):
        machine.pin(node, "formats an object: print options belong to the home")
    return STR


def _worse(machine: Machine, *values: Value) -> str:
    """Name what is wrong with an operand."""
    for value in values:
        for one in machine.heap.parts(value):
            if one.kind not in _DATA:
                return one.kind.value
    return "values that do not go together"


def _text(node: ast.AST) -> str:
    """Return a node's code, short enough for a message."""
    code = ast.unparse(node) if isinstance(node, ast.expr | ast.stmt) else ""
    first = code.split("\n", 1)[0]
    return f"`{first}`" if len(first) <= _LONGEST else f"`{first[: _LONGEST - 1]}…`"


_LONGEST: Final = 40
short = _text
