"""What the methods of lists, dicts, sets and tuples do."""

from __future__ import annotations

import ast
from typing import Final

from workbench.graphs.builtin_calls import CallValue, fill_dict, hash_key, store_in_set
from workbench.graphs.library_calls import Call
from workbench.graphs.machine import Machine
from workbench.graphs.operators import is_data, iterate, self_equal
from workbench.graphs.values import (
    BOTTOM,
    INT,
    NONE,
    Kind,
    Value,
    tuple_of,
)

_SET_NEW: Final = frozenset({"union", "intersection", "difference", "symmetric_difference"})
_SET_CHANGED: Final = frozenset({"add", "discard", "remove", "update", "clear"})
_SET_ASKED: Final = frozenset({"issubset", "issuperset", "isdisjoint"})


def apply_method(machine: Machine, name: str, call: Call, call_value: CallValue) -> Value | None:
    """Return what a container's method gives and note what it does; None for no such method."""
    assert call.target is not None
    machine.effects.work = True
    match call.target.kind:
        case Kind.LIST:
            return _list(machine, name, call, call_value)
        case Kind.DICT:
            return _dict(machine, name, call)
        case Kind.SET:
            return _set(machine, name, call)
        case Kind.TUPLE | Kind.RANGE if name in {"count", "index"}:
            return _search(machine, call)
        case _:
            return None


def _changes(machine: Machine, name: str, call: Call) -> int:
    assert call.target is not None
    assert call.target.region is not None
    machine.mutate(call.target, call.node, f".{name}() changes {call.target.kind.value}")
    return call.target.region


def _search(machine: Machine, call: Call) -> Value:
    assert call.target is not None
    for value in (call.target, *call.positional):
        if not is_data(machine, value):
            return machine.unproven(call.node, f"compares {value.kind.value}")
    if not all(self_equal(machine, value) for value in call.positional):
        machine.pin(call.node, "looks for what may be NaN, which equals only itself")
    return INT


def _list(machine: Machine, name: str, call: Call, call_value: CallValue) -> Value | None:  # noqa: PLR0911  (a table)
    assert call.target is not None
    assert call.target.region is not None
    content = machine.heap.content(call.target.region)
    match name:
        case "count" | "index":
            return _search(machine, call)
        case "copy":
            return machine.make_list(content, call.node)
        case "append" | "insert" | "extend":
            region = _changes(machine, name, call)
            given = call.positional[-1] if call.positional else BOTTOM
            stored = iterate(machine, given, call.node) if name == "extend" else given
            machine.heap.store(region, stored)
            return NONE
        case "pop":
            _changes(machine, name, call)
            return content
        case "clear" | "reverse":
            _changes(machine, name, call)
            return NONE
        case "remove":
            _changes(machine, name, call)
            _search(machine, call)
            return NONE
        case "sort":
            _changes(machine, name, call)
            key = call.keywords.get("key", NONE)
            if key.kind is not Kind.NONE:
                content = call_value(machine, key, [content], call.node)
            if not is_data(machine, content):
                machine.unproven(call.node, f"compares {content.kind.value}")
            return NONE
        case _:
            return None


def _dict(machine: Machine, name: str, call: Call) -> Value | None:  # noqa: PLR0911  (a table)
    assert call.target is not None
    assert call.target.region is not None
    heap = machine.heap
    content, keys = heap.content(call.target.region), heap.keys(call.target.region)
    match name:
        case "keys" | "values" | "items":
            elem = {"keys": keys, "values": content, "items": tuple_of(keys, content)}[name]
            made = machine.make(Kind.ITER, call.node)
            return Value(Kind.ITER, region=made.region, elem=elem)
        case "copy":
            made = machine.make(Kind.DICT, call.node)
            assert made.region is not None
            heap.store(made.region, content, keys)
            return made
        case "get" | "pop" | "setdefault":
            return _dict_lookup(machine, name, call, content)
        case "update":
            _changes(machine, name, call)
            fill_dict(machine, call.target, call)
            return NONE
        case "clear":
            _changes(machine, name, call)
            return NONE
        case "popitem":
            _changes(machine, name, call)
            return tuple_of(keys, content)
        case _:
            return None


def _dict_lookup(machine: Machine, name: str, call: Call, content: Value) -> Value:
    assert call.target is not None
    assert call.target.region is not None
    key = call.positional[0] if call.positional else BOTTOM
    default = call.positional[1] if len(call.positional) > 1 else NONE
    hash_key(machine, key, call.node, call.target)
    constant = bool(call.node.args) and isinstance(call.node.args[0], ast.Constant)
    if not (constant or self_equal(machine, key)):
        machine.pin(call.node, "looks up what may be NaN, which equals only itself")
    if name != "get":
        _changes(machine, name, call)
    if name == "setdefault":
        machine.heap.store(call.target.region, default, key)
    return machine.heap.join(content, default)


def _set(machine: Machine, name: str, call: Call) -> Value | None:
    assert call.target is not None
    assert call.target.region is not None
    content = machine.heap.content(call.target.region)
    if name in _SET_CHANGED:
        _changes(machine, name, call)
        for value in call.positional:
            given = iterate(machine, value, call.node) if name == "update" else value
            store_in_set(machine, call.target, given, call.node)
        return NONE
    if name == "pop":
        machine.pin(call.node, "depends on the order of a set, which a copy does not keep")
        _changes(machine, name, call)
        return content
    if name in _SET_NEW or name == "copy":
        made = machine.make(Kind.SET, call.node)
        store_in_set(machine, made, content, call.node)
        for value in call.positional:
            store_in_set(machine, made, iterate(machine, value, call.node), call.node)
        return made
    if name in _SET_ASKED:
        for value in (content, *(iterate(machine, one, call.node) for one in call.positional)):
            if not is_data(machine, value):
                machine.unproven(call.node, f"hashes {value.kind.value}")
        return INT
    return None
