"""The abstract run of expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from workbench.graphs.builtin_calls import hash_key, store_in_set
from workbench.graphs.calls import attribute, call_function, call_method
from workbench.graphs.library_calls import Call, copied_by_pandas
from workbench.graphs.machine import Closure, Frame, Machine
from workbench.graphs.operators import (
    binary,
    compare,
    formatted,
    iterate,
    short,
    subscript,
    test,
    unary,
)
from workbench.graphs.scopes import Comprehension, bindings, function_bindings, target_names
from workbench.graphs.values import (
    BOTTOM,
    BYTES,
    INT,
    NONE,
    NUM,
    SCALAR,
    STR,
    UNKNOWN,
    Kind,
    Value,
    tuple_all,
    tuple_of,
)

_Scope = Frame | None
_CONSTANTS: Final = {bool: INT, int: INT, float: NUM, complex: NUM, str: STR, bytes: BYTES}


def evaluate(machine: Machine, node: ast.expr, frame: _Scope) -> Value:
    """Return what an expression may be, and note what computing it may do."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        return machine.unproven(node, f"{short(node)} is not followed")
    return handler(machine, node, frame)


def assign(machine: Machine, target: ast.expr, value: Value, frame: _Scope) -> None:
    """Note what storing a value in an assignment target does."""
    match target:
        case ast.Name():
            machine.bind(target.id, value, frame)
        case ast.Tuple() | ast.List():
            _unpack(machine, target, value, frame)
        case ast.Starred():
            assign(machine, target.value, machine.make_list(value, target), frame)
        case ast.Subscript():
            base = evaluate(machine, target.value, frame)
            index = evaluate(machine, target.slice, frame)
            store_item(machine, base, index, value, target)
        case ast.Attribute():
            store_attribute(machine, evaluate(machine, target.value, frame), target)
        case _:
            machine.unproven(target, f"assigns to {short(target)}")


def _unpack(machine: Machine, target: ast.Tuple | ast.List, value: Value, frame: _Scope) -> None:
    items = value.items if value.kind is Kind.TUPLE else None
    starred = any(isinstance(one, ast.Starred) for one in target.elts)
    if items is not None and len(items) == len(target.elts) and not starred:
        for one, item in zip(target.elts, items, strict=True):
            assign(machine, one, item, frame)
        return
    element = iterate(machine, value, target)
    for one in target.elts:
        assign(machine, one, element, frame)


def store_item(
    machine: Machine, base: Value, index: Value, value: Value, node: ast.Subscript
) -> None:
    """Note what `base[index] = value` does."""
    heap = machine.heap
    machine.effects.work = True
    match base.kind:
        case Kind.BOTTOM:
            return
        case Kind.LIST | Kind.DICT:
            assert base.region is not None
            machine.mutate(base, node, f"{short(node)} = changes {base.kind.value}")
            if base.kind is Kind.DICT:
                hash_key(machine, index, node, base)
                heap.store(base.region, value, index)
            elif isinstance(node.slice, ast.Slice):
                heap.store(base.region, iterate(machine, value, node))
            else:
                heap.store(base.region, value)
        case Kind.ARRAY | Kind.FRAME if heap.readable(base) and heap.readable(value):
            assert base.region is not None
            machine.mutate(base, node, f"{short(node)} = changes {base.kind.value}")
            if base.kind is Kind.FRAME and not copied_by_pandas(machine, value):
                heap.store(base.region, UNKNOWN)  # a column of objects
            # An array of objects may keep the very object.
            for region in heap.reach(value):
                heap.union(base.region, region)
        case _:
            machine.unproven(node, f"changes an item of {base.kind.value}")


def store_attribute(machine: Machine, base: Value, node: ast.Attribute) -> None:
    """Note what `base.name = …` does."""
    if base.kind in {Kind.MODULE, Kind.CALLABLE, Kind.CLOSURE}:
        machine.unproven(node, f"{short(node)} = changes {base.kind.value}")
        machine.effects.poison = machine.effects.unproven
    elif base.kind in {Kind.ARRAY, Kind.FRAME} and machine.heap.readable(base):
        machine.mutate(base, node, f"{short(node)} = changes {base.kind.value}")
    elif base.kind is not Kind.BOTTOM:
        machine.unproven(node, f"{short(node)} = changes {base.kind.value}")


def make_closure(
    machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, frame: _Scope
) -> Value:
    """Return the function that a `def` or `lambda` makes here."""
    arguments = node.args
    key = (id(node), id(frame))
    closure = machine.closures.get(key)
    defaults = tuple(evaluate(machine, one, frame) for one in arguments.defaults)
    named = {
        one.arg: evaluate(machine, default, frame)
        for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    }
    if closure is None:
        closure = machine.closures[key] = Closure(
            name=getattr(node, "name", "lambda"),
            node=node,
            parent=frame,
            local=frozenset(function_bindings(node).bound),
            barred=why_barred(node),
        )
    closure.defaults, closure.keyword_defaults = defaults, named
    return Value(Kind.CLOSURE, ref=closure)


def why_barred(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> str | None:
    """Say why a function cannot be followed, or None."""
    if isinstance(node, ast.AsyncFunctionDef):
        return "is a coroutine"
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    for one in body:
        for inner in ast.walk(one):
            if isinstance(inner, ast.Yield | ast.YieldFrom):
                return "is a generator"
    return None


def _constant(machine: Machine, node: ast.Constant, _: _Scope) -> Value:
    del machine
    return NONE if node.value is None else _CONSTANTS.get(type(node.value), SCALAR)


def _name(machine: Machine, node: ast.Name, frame: _Scope) -> Value:
    return machine.lookup(node.id, frame)


def _binary(machine: Machine, node: ast.BinOp, frame: _Scope) -> Value:
    left = evaluate(machine, node.left, frame)
    return binary(machine, left, node.op, evaluate(machine, node.right, frame), node)


def _unary(machine: Machine, node: ast.UnaryOp, frame: _Scope) -> Value:
    return unary(machine, node.op, evaluate(machine, node.operand, frame), node)


def _bool(machine: Machine, node: ast.BoolOp, frame: _Scope) -> Value:
    joined = BOTTOM
    for one in node.values:
        value = evaluate(machine, one, frame)
        test(machine, value, one)
        joined = machine.heap.join(joined, value)
    return joined


def _compare(machine: Machine, node: ast.Compare, frame: _Scope) -> Value:
    left_node, left = node.left, evaluate(machine, node.left, frame)
    joined = BOTTOM
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        right = evaluate(machine, right_node, frame)
        found = compare(machine, left, op, right, (left_node, right_node))
        joined = machine.heap.join(joined, found)
        left_node, left = right_node, right
    return joined


def _if(machine: Machine, node: ast.IfExp, frame: _Scope) -> Value:
    test(machine, evaluate(machine, node.test, frame), node.test)
    body = evaluate(machine, node.body, frame)
    return machine.heap.join(body, evaluate(machine, node.orelse, frame))


def _call(machine: Machine, node: ast.Call, frame: _Scope) -> Value:
    target = None
    if isinstance(node.func, ast.Attribute):
        target = evaluate(machine, node.func.value, frame)
        is_library = target.kind in {Kind.MODULE, Kind.CALLABLE}
        function = attribute(machine, target, node.func) if is_library else UNKNOWN
        target = None if is_library else target
    else:
        function = evaluate(machine, node.func, frame)
    call = Call(
        path=function.ref if function.kind is Kind.CALLABLE else short(node.func),
        positional=_positional(machine, node, frame),
        keywords=_keywords(machine, node, frame),
        node=node,
        target=target,
    )
    if target is not None:
        assert isinstance(node.func, ast.Attribute)
        return call_method(machine, target, node.func.attr, call)
    return call_function(machine, function, call)


def _positional(machine: Machine, node: ast.Call, frame: _Scope) -> list[Value]:
    values: list[Value] = []
    for one in node.args:
        if isinstance(one, ast.Starred):
            given = evaluate(machine, one.value, frame)
            if given.items is not None:
                values += given.items
            else:
                values.append(machine.unproven(one, "passes *arguments of unknown number"))
        else:
            values.append(evaluate(machine, one, frame))
    return values


def _keywords(machine: Machine, node: ast.Call, frame: _Scope) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for one in node.keywords:
        value = evaluate(machine, one.value, frame)
        if one.arg is None:
            machine.unproven(one.value, "passes **keywords that are not known beforehand")
        else:
            values[one.arg] = value
    return values


def _attribute(machine: Machine, node: ast.Attribute, frame: _Scope) -> Value:
    return attribute(machine, evaluate(machine, node.value, frame), node)


def _subscript(machine: Machine, node: ast.Subscript, frame: _Scope) -> Value:
    base = evaluate(machine, node.value, frame)
    return subscript(machine, base, evaluate(machine, node.slice, frame), node)


def _slice(machine: Machine, node: ast.Slice, frame: _Scope) -> Value:
    for one in (node.lower, node.upper, node.step):
        value = NONE if one is None else evaluate(machine, one, frame)
        if value.kind is Kind.UNKNOWN:
            machine.unproven(node, "slices by a value of unknown type")
    return SCALAR


def _elements(machine: Machine, nodes: list[ast.expr], frame: _Scope) -> list[Value]:
    found = []
    for one in nodes:
        starred = isinstance(one, ast.Starred)
        value = evaluate(machine, one.value if isinstance(one, ast.Starred) else one, frame)
        found.append(iterate(machine, value, one) if starred else value)
    return found


def _list(machine: Machine, node: ast.List, frame: _Scope) -> Value:
    content = BOTTOM
    for value in _elements(machine, node.elts, frame):
        content = machine.heap.join(content, value)
    return machine.make_list(content, node)


def _tuple(machine: Machine, node: ast.Tuple, frame: _Scope) -> Value:
    values = _elements(machine, node.elts, frame)
    if any(isinstance(one, ast.Starred) for one in node.elts):
        joined = BOTTOM
        for value in values:
            joined = machine.heap.join(joined, value)
        return tuple_all(joined)
    return tuple_of(*values)


def _set(machine: Machine, node: ast.Set, frame: _Scope) -> Value:
    made = machine.make(Kind.SET, node)
    for value in _elements(machine, node.elts, frame):
        store_in_set(machine, made, value, node)
    return made


def _dict(machine: Machine, node: ast.Dict, frame: _Scope) -> Value:
    made = machine.make(Kind.DICT, node)
    assert made.region is not None
    for key, one in zip(node.keys, node.values, strict=True):
        value = evaluate(machine, one, frame)
        if key is None:
            known = value.kind is Kind.DICT and value.region is not None
            if known and value.region is not None:
                heap = machine.heap
                heap.store(made.region, heap.content(value.region), heap.keys(value.region))
            else:
                machine.unproven(one, f"unpacks {value.kind.value}")
            continue
        name = evaluate(machine, key, frame)
        hash_key(machine, name, key)
        machine.heap.store(made.region, value, name)
    return made


def enter_comprehension(machine: Machine, node: Comprehension, frame: _Scope) -> Frame:
    """Return the frame of a comprehension, with what its loops give in it."""
    names = {name for one in node.generators for name in target_names(one.target)}
    inner = Frame(local=frozenset(names), parent=frame, comprehension=True)
    for index, one in enumerate(node.generators):
        if one.is_async:
            machine.unproven(node, "an asynchronous comprehension")
        value = evaluate(machine, one.iter, inner if index else frame)
        assign(machine, one.target, iterate(machine, value, one.iter), inner)
        for condition in one.ifs:
            test(machine, evaluate(machine, condition, inner), condition)
    return inner


def _comprehension(machine: Machine, node: Comprehension, frame: _Scope) -> Value:
    machine.effects.work = True
    if bindings([node]).bound:
        # `:=` in it binds outside, and perhaps never.
        weak, machine.weak = machine.weak, True
        try:
            return _comprehended(machine, node, frame)
        finally:
            machine.weak = weak
    return _comprehended(machine, node, frame)


def _comprehended(machine: Machine, node: Comprehension, frame: _Scope) -> Value:
    inner = enter_comprehension(machine, node, frame)
    if isinstance(node, ast.DictComp):
        made = machine.make(Kind.DICT, node)
        assert made.region is not None
        key = evaluate(machine, node.key, inner)
        hash_key(machine, key, node)
        machine.heap.store(made.region, evaluate(machine, node.value, inner), key)
        return made
    element = evaluate(machine, node.elt, inner)
    if isinstance(node, ast.SetComp):
        return store_in_set(machine, machine.make(Kind.SET, node), element, node)
    if isinstance(node, ast.ListComp):
        return machine.make_list(element, node)
    return Value(Kind.ITER, region=machine.make(Kind.ITER, node).region, elem=element)


def _lambda(machine: Machine, node: ast.Lambda, frame: _Scope) -> Value:
    return make_closure(machine, node, frame)


def _joined(machine: Machine, node: ast.JoinedStr, frame: _Scope) -> Value:
    for one in node.values:
        if isinstance(one, ast.FormattedValue):
            formatted(machine, evaluate(machine, one.value, frame), one.value)
            if one.format_spec is not None:
                evaluate(machine, one.format_spec, frame)
    return STR


def _walrus(machine: Machine, node: ast.NamedExpr, frame: _Scope) -> Value:
    value = evaluate(machine, node.value, frame)
    while frame is not None and frame.comprehension:
        frame = frame.parent
    # It may stand where it is not reached.
    weak, machine.weak = machine.weak, True
    try:
        assign(machine, node.target, value, frame)
    finally:
        machine.weak = weak
    return value


_HANDLERS: Final[dict[type[ast.expr], Callable[[Machine, Any, _Scope], Value]]] = {
    ast.Constant: _constant, ast.Name: _name, ast.BinOp: _binary, ast.UnaryOp: _unary,
    ast.BoolOp: _bool, ast.Compare: _compare, ast.IfExp: _if, ast.Call: _call,
    ast.Attribute: _attribute, ast.Subscript: _subscript, ast.Slice: _slice, ast.List: _list,
    ast.Tuple: _tuple, ast.Set: _set, ast.Dict: _dict, ast.ListComp: _comprehension,
    ast.SetComp: _comprehension, ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension, ast.Lambda: _lambda, ast.JoinedStr: _joined,
    ast.NamedExpr: _walrus,
}  # fmt: skip
