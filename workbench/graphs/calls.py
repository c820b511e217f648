"""Calls: find what is called, and follow it."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Final

from workbench.graphs.builtin_calls import apply_builtin
from workbench.graphs.catalogue import Rule
from workbench.graphs.container_calls import apply_method
from workbench.graphs.library_calls import Call, apply_rule
from workbench.graphs.machine import Machine
from workbench.graphs.operators import formatted, iterate, short
from workbench.graphs.values import (
    BOTTOM,
    INT,
    NUM,
    SCALAR,
    STR,
    WITH_CONTENT,
    Kind,
    Value,
    tuple_all,
)

_METHODS_OF: Final = {
    Kind.ARRAY: "array", Kind.FRAME: "frame", Kind.STR: "str", Kind.BYTES: "bytes",
    Kind.INT: "number", Kind.NUM: "number", Kind.RNG: "rng", Kind.HASH: "hash",
    Kind.ESTIMATOR: "estimator",
}  # fmt: skip
_CONTAINERS: Final = WITH_CONTENT | {Kind.TUPLE, Kind.RANGE}
_FITTED: Final = frozenset(
    {
        "coef_", "intercept_", "classes_", "labels_", "cluster_centers_", "inertia_",
        "feature_importances_", "components_", "explained_variance_ratio_", "best_score_",
        "mean_", "scale_", "var_",
    }
)  # fmt: skip
_SHARED_RANDOM: Final = (
    "draws from the random state that the whole notebook shares; a generator made where it is "
    "used, np.random.default_rng(seed), does not"
)


def call_function(machine: Machine, function: Value, call: Call) -> Value:
    """Follow a call of a value."""
    node = call.node
    match function.kind:
        case Kind.BOTTOM:
            return BOTTOM
        case Kind.CLOSURE:
            machine.effects.heavy = machine.effects.work = True
            return machine.invoke(machine, function.ref, call.positional, dict(call.keywords), node)
        case Kind.CALLABLE:
            return _call_library(machine, function.ref, call)
        case Kind.METHOD:
            assert function.items is not None
            bound = replace(call, target=function.items[0])
            return call_method(machine, function.items[0], function.ref, bound)
        case _:
            return machine.unproven(node, f"calls {short(node.func)}, whose effects are not known")


def call_value(machine: Machine, function: Value, given: list[Value], node: ast.Call) -> Value:
    """Call a value with values, as `map` and `key=` do."""
    if Kind.BOTTOM in {one.kind for one in given}:
        return BOTTOM
    bare = ast.Call(func=node.func, args=[], keywords=[])
    ast.copy_location(bare, node)
    # The place in the code stands for the objects that the call makes.
    anchor = machine.anchors.setdefault(id(node), bare)
    name = str(function.ref) if function.kind is Kind.CALLABLE else short(node)
    return call_function(
        machine, function, Call(path=name, positional=given, keywords={}, node=anchor)
    )


def _call_library(machine: Machine, path: str, call: Call) -> Value:
    rule = machine.catalogue.calls.get(path)
    if rule is None or not machine.catalogue.is_genuine(path):
        if path.startswith(("numpy.random.", "random.")):
            return machine.unproven(call.node, f"{path} {_SHARED_RANDOM}")
        return machine.unproven(
            call.node, f"calls {path}, which is not among the calls known to have no side effects"
        )
    if rule.result == "type":
        return machine.unproven(call.node, f"calls {path}")
    if rule.result == "builtin":
        return apply_builtin(machine, path.rpartition(".")[2], call, call_value)
    return apply_rule(machine, rule, call)


def call_method(machine: Machine, target: Value, name: str, call: Call) -> Value:
    """Follow a call of a method of a value."""
    node = call.node
    if target.kind is Kind.BOTTOM:
        return BOTTOM
    if target.kind in _CONTAINERS:
        found = apply_method(machine, name, call, call_value)
        if found is not None:
            return found
    rule = machine.catalogue.methods.get(_METHODS_OF.get(target.kind, ""), {}).get(name)
    if rule is None or not machine.heap.readable(target):
        return machine.unproven(
            node, f"calls {short(node.func)}() of {target.kind.value}, whose effects are not known"
        )
    return _apply_method_rule(machine, rule, target, name, call)


def _apply_method_rule(machine: Machine, rule: Rule, target: Value, name: str, call: Call) -> Value:
    machine.effects.work |= target.kind not in {Kind.STR, Kind.BYTES, Kind.INT, Kind.NUM}
    if rule.result == "format":
        for value in call.values:
            formatted(machine, value, call.node)
        return STR
    if name == "join":
        given = call.positional[0] if call.positional else BOTTOM
        element = iterate(machine, given, call.node)
        known = element.kind in {Kind.STR, Kind.BYTES, Kind.SCALAR, Kind.BOTTOM}
        return Value(target.kind) if known else machine.unproven(call.node, "joins unknown values")
    return apply_rule(machine, rule, call)


def attribute(  # noqa: C901, PLR0911, PLR0912  (a table)
    machine: Machine, base: Value, node: ast.Attribute
) -> Value:
    """Return the value of an attribute, where reading it runs no code."""
    name = node.attr
    match base.kind:
        case Kind.BOTTOM:
            return BOTTOM
        case Kind.MODULE | Kind.CALLABLE:
            return library_value(machine, f"{base.ref}.{name}")
        case Kind.ARRAY if name in {"size", "ndim", "nbytes", "itemsize"}:
            return INT
        case Kind.ARRAY | Kind.FRAME if name == "shape":
            return tuple_all(INT)
        case Kind.ARRAY if name == "dtype":
            return SCALAR
        case Kind.ARRAY if name in {"T", "real", "imag"}:
            return base
        case Kind.FRAME if name == "values":
            return Value(Kind.ARRAY, region=base.region)
        case Kind.FRAME if name in {"size", "ndim", "empty"}:
            return INT
        case Kind.FRAME if machine.heap.readable(base):
            return base  # a column, an index, an indexer
        case Kind.RESULT if not name.startswith("_"):
            return Value(Kind.ARRAY, region=base.region)
        case Kind.ESTIMATOR if name in _FITTED and machine.heap.readable(base):
            return Value(Kind.ARRAY, region=base.region)
        case Kind.LIST | Kind.DICT | Kind.SET | Kind.STR:
            return Value(Kind.METHOD, items=(base,), ref=name)
        case Kind.INT | Kind.NUM if name in {"real", "imag", "numerator", "denominator"}:
            return NUM
        case _:
            return machine.unproven(node, f"reads {short(node)} of {base.kind.value}")


def library_value(machine: Machine, path: str) -> Value:
    """Return what a path in a library is."""
    catalogue = machine.catalogue
    if path in catalogue.modules and catalogue.is_module(path):
        return Value(Kind.MODULE, ref=path)
    kind = catalogue.constants.get(path)
    if kind is not None and catalogue.is_constant(path):
        return NUM if kind == "num" else Value(Kind.NONE)
    return Value(Kind.CALLABLE, ref=path)
