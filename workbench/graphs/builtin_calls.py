"""What Python's own functions do to values of known kinds."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final

from workbench.graphs.library_calls import Call
from workbench.graphs.machine import Machine
from workbench.graphs.operators import binary, formatted, is_data, iterate, self_equal
from workbench.graphs.values import (
    BOTTOM,
    BYTES,
    INT,
    NONE,
    NUM,
    RANGE,
    SCALAR,
    SCALARS,
    STR,
    UNKNOWN,
    WITH_CONTENT,
    Kind,
    Value,
    tuple_all,
    tuple_of,
)

CallValue = Callable[[Machine, Value, list[Value], ast.Call], Value]
_Handler = Callable[[Machine, Call, CallValue], Value]

_CHEAP: Final = frozenset(
    {"len", "int", "float", "bool", "complex", "str", "isinstance", "range", "ord", "chr", "slice"}
)
_TYPES: Final = frozenset({"builtin", "type", "dtype", "exception"})
_PRINTABLE: Final = SCALARS | WITH_CONTENT | {
    Kind.ARRAY, Kind.FRAME, Kind.TUPLE, Kind.PLAIN, Kind.BOTTOM,
}  # fmt: skip
_PAIR: Final = 2


def apply_builtin(machine: Machine, name: str, call: Call, call_value: CallValue) -> Value:
    """Return what a call of a built-in function gives, and note what it does.

    Args:
        machine: The analysis.
        name: The function's.
        call: The call.
        call_value: Calls a value: what `map` and `key=` need.
    """
    small = all(one.kind in SCALARS - {Kind.RANGE} for one in call.values)
    machine.effects.work |= not (small or name in _CHEAP)
    handler = _HANDLERS.get(name)
    return (
        machine.unproven(call.node, f"calls {name}")
        if handler is None
        else handler(machine, call, call_value)
    )


def _one(machine: Machine, call: Call) -> Value | None:
    """Return the only argument, or note that the call is another than is known."""
    if len(call.positional) == 1 and not call.keywords:
        return call.positional[0]
    machine.unproven(call.node, f"calls {call.path} in a way that is not known")
    return None


def _len(machine: Machine, call: Call, _: CallValue) -> Value:
    value = _one(machine, call)
    if value is None or value.kind in _PRINTABLE or value.kind is Kind.RESULT:
        return INT
    return machine.unproven(call.node, f"asks the length of {value.kind.value}")


def _sum(machine: Machine, call: Call, _: CallValue) -> Value:
    total = call.keywords.get("start", call.positional[1] if len(call.positional) > 1 else INT)
    element = iterate(machine, call.positional[0], call.node) if call.positional else BOTTOM
    for _round in range(2):
        added = binary(machine, total, ast.Add(), element, call.node)
        total = machine.heap.join(total, added)
    return total


def _extreme(machine: Machine, call: Call, call_value: CallValue) -> Value:
    given = call.positional
    found = BOTTOM
    elements = [iterate(machine, given[0], call.node)] if len(given) == 1 else given
    for element in elements:
        found = machine.heap.join(found, element)
    _ordered(machine, call, found, call_value)
    return machine.heap.join(found, call.keywords.get("default", BOTTOM))


def _sorted(machine: Machine, call: Call, call_value: CallValue) -> Value:
    content = iterate(machine, call.positional[0], call.node) if call.positional else BOTTOM
    _ordered(machine, call, content, call_value)
    return machine.make_list(content, call.node)


def _ordered(machine: Machine, call: Call, element: Value, call_value: CallValue) -> None:
    """Note what comparing elements does, under `key=` where it is given."""
    if not set(call.keywords) <= {"key", "reverse", "default"}:
        machine.unproven(call.node, f"calls {call.path} in a way that is not known")
    key = call.keywords.get("key", NONE)
    if key.kind is not Kind.NONE:
        element = call_value(machine, key, [element], call.node)
    if not is_data(machine, element):
        machine.unproven(call.node, f"{call.path} compares {element.kind.value}")


def _abs(machine: Machine, call: Call, _: CallValue) -> Value:
    value = call.positional[0] if call.positional else BOTTOM
    if all(one.kind in SCALARS for one in call.values):
        return value if value.kind is Kind.INT else NUM
    if value.kind in {Kind.ARRAY, Kind.FRAME} and is_data(machine, value):
        return machine.make(value.kind, call.node)
    return machine.unproven(call.node, f"{call.path} of {value.kind.value}")


def _new_list(machine: Machine, call: Call, _: CallValue) -> Value:
    content = iterate(machine, call.positional[0], call.node) if call.positional else BOTTOM
    return machine.make_list(content, call.node)


def _new_tuple(machine: Machine, call: Call, _: CallValue) -> Value:
    if not call.positional:
        return tuple_of()
    given = call.positional[0]
    return given if given.kind is Kind.TUPLE else tuple_all(iterate(machine, given, call.node))


def _new_set(machine: Machine, call: Call, _: CallValue) -> Value:
    made = machine.make(Kind.SET, call.node)
    content = iterate(machine, call.positional[0], call.node) if call.positional else BOTTOM
    return store_in_set(machine, made, content, call.node)


def store_in_set(machine: Machine, target: Value, content: Value, node: ast.AST) -> Value:
    """Put a value into a set."""
    assert target.region is not None
    if not is_data(machine, content):
        machine.unproven(node, f"hashes {content.kind.value}")
    elif not self_equal(machine, content):
        machine.pin(node, "puts what may be NaN into a set, which knows it by identity")
    machine.heap.store(target.region, content)
    return target


def _new_dict(machine: Machine, call: Call, _: CallValue) -> Value:
    made = machine.make(Kind.DICT, call.node)
    fill_dict(machine, made, call)
    return made


def fill_dict(machine: Machine, target: Value, call: Call) -> None:
    """Put the arguments of `dict(…)` or `.update(…)` into a dict."""
    assert target.region is not None
    heap = machine.heap
    for value in call.keywords.values():
        heap.store(target.region, value, STR)
    for given in call.positional:
        if given.kind is Kind.DICT:
            assert given.region is not None
            heap.store(target.region, heap.content(given.region), heap.keys(given.region))
            continue
        pair = iterate(machine, given, call.node)
        if pair.kind is Kind.TUPLE and pair.items is not None and len(pair.items) == _PAIR:
            hash_key(machine, pair.items[0], call.node)
            heap.store(target.region, pair.items[1], pair.items[0])
        elif pair.kind is not Kind.BOTTOM:
            machine.unproven(call.node, f"makes a dict of {pair.kind.value}")


def hash_key(machine: Machine, key: Value, node: ast.AST, target: Value | None = None) -> None:
    """Note what using a value as a dict's key does: it may be compared with the others."""
    if target is not None and target.region is not None:
        others = machine.heap.keys(target.region)
        if not is_data(machine, others):
            machine.unproven(node, f"compares a key with {others.kind.value}")
    if not all(one.kind in SCALARS | {Kind.TUPLE, Kind.ARRAY, Kind.BOTTOM}
               for one in machine.heap.parts(key)):  # fmt: skip
        machine.unproven(node, f"hashes {key.kind.value}")


def _iterator(machine: Machine, call: Call, elem: Value) -> Value:
    made = machine.make(Kind.ITER, call.node)
    return Value(Kind.ITER, region=made.region, elem=elem)


def _enumerate(machine: Machine, call: Call, _: CallValue) -> Value:
    elem = iterate(machine, call.positional[0], call.node) if call.positional else BOTTOM
    return _iterator(machine, call, tuple_of(INT, elem))


def _zip(machine: Machine, call: Call, _: CallValue) -> Value:
    elements = [iterate(machine, one, call.node) for one in call.positional]
    return _iterator(machine, call, tuple_of(*elements))


def _reversed(machine: Machine, call: Call, _: CallValue) -> Value:
    value = _one(machine, call)
    return _iterator(machine, call, iterate(machine, value or BOTTOM, call.node))


def _map(machine: Machine, call: Call, call_value: CallValue) -> Value:
    function, *given = call.positional or [UNKNOWN]
    elements = [iterate(machine, one, call.node) for one in given]
    return _iterator(machine, call, call_value(machine, function, elements, call.node))


def _filter(machine: Machine, call: Call, call_value: CallValue) -> Value:
    if len(call.positional) != _PAIR:
        return machine.unproven(call.node, "calls filter in a way that is not known")
    function, given = call.positional
    element = iterate(machine, given, call.node)
    kept = element
    if function.kind is not Kind.NONE:
        kept = call_value(machine, function, [element], call.node)
    if kept.kind is Kind.UNKNOWN:
        machine.unproven(call.node, "asks a value of unknown type for its truth")
    return _iterator(machine, call, element)


def _convert(result: Value) -> _Handler:
    def handler(machine: Machine, call: Call, _: CallValue) -> Value:
        for value in call.values:
            if not is_data(machine, value):
                machine.unproven(call.node, f"{call.path} of {value.kind.value}")
        return result

    return handler


def _str(machine: Machine, call: Call, _: CallValue) -> Value:
    for value in call.values:
        formatted(machine, value, call.node)
    return STR


def _all(machine: Machine, call: Call, _: CallValue) -> Value:
    value = _one(machine, call)
    element = iterate(machine, value or BOTTOM, call.node)
    if element.kind is Kind.UNKNOWN:
        machine.unproven(call.node, "asks a value of unknown type for its truth")
    return INT


def _isinstance(machine: Machine, call: Call, _: CallValue) -> Value:
    types = call.positional[1] if len(call.positional) == _PAIR else UNKNOWN
    for one in types.items if types.items is not None else (types,):
        rule = machine.catalogue.calls.get(one.ref) if one.kind is Kind.CALLABLE else None
        if rule is None or rule.result not in _TYPES:
            return machine.unproven(call.node, "isinstance of a type that is not known")
    if call.positional[0].kind is Kind.UNKNOWN:
        return machine.unproven(call.node, "isinstance of a value of unknown type")
    return INT


def _power(machine: Machine, call: Call, _: CallValue) -> Value:
    if len(call.values) == _PAIR:
        return binary(machine, call.values[0], ast.Pow(), call.values[1], call.node)
    return _convert(NUM)(machine, call, _)


def _print(machine: Machine, call: Call, _: CallValue) -> Value:
    shown = [value for name, value in call.keywords.items() if name not in {"sep", "end", "flush"}]
    parts = [one for value in call.values for one in machine.heap.parts(value)]
    if shown or not all(one.kind in _PRINTABLE for one in parts):
        return machine.unproven(call.node, f"{call.path} of a value whose text is its own code's")
    machine.pin(call.node, f"{call.path.rpartition('.')[2]} keeps its place in the output")
    return NONE


_HANDLERS: Final[dict[str, _Handler]] = {
    "len": _len, "sum": _sum, "min": _extreme, "max": _extreme, "sorted": _sorted, "abs": _abs,
    "round": _abs, "range": _convert(RANGE), "list": _new_list, "tuple": _new_tuple,
    "set": _new_set, "dict": _new_dict, "enumerate": _enumerate, "zip": _zip,
    "reversed": _reversed, "map": _map, "filter": _filter, "int": _convert(INT),
    "float": _convert(NUM), "complex": _convert(NUM), "bool": _convert(INT), "str": _str,
    "repr": _str, "any": _all, "all": _all, "isinstance": _isinstance,
    "divmod": _convert(tuple_all(SCALAR)), "pow": _power, "ord": _convert(INT),
    "chr": _convert(STR), "hex": _convert(STR), "bin": _convert(STR), "oct": _convert(STR),
    "bytes": _convert(BYTES), "slice": _convert(SCALAR), "print": _print, "display": _print,
}  # fmt: skip
