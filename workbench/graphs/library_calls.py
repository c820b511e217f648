"""What calls that the catalogue lists do.

`result` of a rule says what the call gives:

    array, frame, result, hash     a new object of that kind (`array`: or a number)
    reduce                         one number where no axis is named, else a new array
    arrays                         a tuple of new arrays
    list:array, dict:score, xy     a list (or tuple) of, a dict of, a pair of new arrays
    view                           an array or frame that may share its arguments' memory
    frame_over                     a frame that may share them
    num, int, str, bytes, none     an immutable value; also list:str, tuple:str
    dtype                          a number type, called as a conversion
    rng                            a random generator, only with an integer seed
    draws                          a new array; the generator changes
    estimator, pipeline, clone     an unfitted estimator; a pipeline keeps the ones it is given
    score                          a new array; the estimator given is only cloned
    mutate, mutate_self, mutate_array   changes its object; gives None, it, a new array
    clock, file                    a number; what a file holds: both keep their place
    product, combinations          an iterator of tuples
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Final

from workbench.graphs.catalogue import Rule
from workbench.graphs.machine import Machine
from workbench.graphs.operators import iterate
from workbench.graphs.values import (
    BOTTOM,
    BYTES,
    INT,
    NONE,
    NUM,
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

_IMMUTABLE: Final = {
    "num": NUM, "int": INT, "str": STR, "bytes": BYTES, "none": NONE, "scalar": SCALAR,
}  # fmt: skip
_QUIET: Final = {"n_jobs": (None, 1), "verbose": (None, 0, False)}
_OBJECT: Final = frozenset({"O", "object", "|O"})
_ESTIMATORS: Final = frozenset({"score", "dict:score", "clone", "pipeline"})
_ARRAYS_ONLY: Final = frozenset({"numpy", "scipy"})
_COPY_ON_WRITE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call whose arguments were evaluated.

    Attributes:
        path: What is called, for messages.
        positional: Values of the positional arguments.
        keywords: Values of the keyword arguments.
        node: The call.
        target: The object of a method call.
    """

    path: str
    positional: list[Value]
    keywords: Mapping[str, Value]
    node: ast.Call
    target: Value | None = None

    @property
    def values(self) -> list[Value]:
        """All arguments."""
        return [*self.positional, *self.keywords.values()]

    def constant(self, name: str, default: object) -> object:
        """Return a keyword's constant, `default` where it is missing, else the call itself."""
        for keyword in self.node.keywords:
            if keyword.arg == name:
                return keyword.value.value if isinstance(keyword.value, ast.Constant) else self
        return default


def apply_rule(machine: Machine, rule: Rule, call: Call) -> Value:
    """Return what a call gives, and note what it does."""
    objection = _objection(machine, rule, call)
    if objection is not None:
        return machine.unproven(call.node, f"{call.path}: {objection}")
    effects = machine.effects
    effects.heavy |= rule.heavy
    # Functions of numbers are as cheap as operators are; methods of scalars too.
    effects.work |= rule.heavy or not all(one.kind in SCALARS for one in call.values)
    return _result(machine, rule, call)


def _objection(  # noqa: PLR0911  (one for each reason)
    machine: Machine, rule: Rule, call: Call
) -> str | None:
    """Say why a call is not the harmless one that the rule speaks of."""
    if len(call.positional) > rule.positional:
        return f"more than {rule.positional} positional arguments; name the others"
    if len(call.values) < rule.least:
        return f"with fewer than {rule.least} arguments it gives something else"
    forbidden = sorted(rule.forbid & set(call.keywords))
    if forbidden:
        return f"{forbidden[0]}= is not among the uses known to be safe"
    for name, harmless in _QUIET.items():
        if call.constant(name, None) not in harmless:
            return f"{name}= may start processes or print"
    if rule.rest == "scalar" and any(
        one.kind not in SCALARS for one in [*call.positional[1:], *call.keywords.values()]
    ):
        return "arguments after the first are not plain numbers"
    if _needs_seed(rule, call) and call.keywords.get("random_state", NONE).kind is not Kind.INT:
        return (
            "draws from the random state that the whole notebook shares; "
            "pass random_state= an integer"
        )
    return _bad_argument(machine, rule, call)


def _needs_seed(rule: Rule, call: Call) -> bool:
    if rule.seed:
        return True
    for name, harmless in rule.seed_unless.items():
        if name in call.keywords and str(call.constant(name, None)) not in harmless:
            return True
    return False


def _bad_argument(machine: Machine, rule: Rule, call: Call) -> str | None:
    estimators = rule.result in _ESTIMATORS
    plain = SCALARS | {Kind.ARRAY, Kind.LIST, Kind.TUPLE, Kind.FRAME, Kind.BOTTOM}
    if call.path.partition(".")[0] not in _ARRAYS_ONLY:
        plain |= {Kind.DICT, Kind.PLAIN}  # numpy would keep the very dict in an array of objects
    for value in call.values:
        if value.kind is Kind.CALLABLE and _is_dtype(machine, value):
            continue
        for one in machine.heap.parts(value):
            if one.kind not in plain and not (estimators and one.kind is Kind.ESTIMATOR):
                return f"is given {one.kind.value}"
    for node in [*call.node.args, *(one.value for one in call.node.keywords)]:
        if isinstance(node, ast.Constant) and node.value in _OBJECT:
            return "an array of objects may hold anything"
    dtype = call.keywords.get("dtype", NONE)
    if dtype.kind not in {Kind.NONE, Kind.CALLABLE} and call.constant("dtype", None) is call:
        return "its dtype is not known beforehand"
    return None


def _is_dtype(machine: Machine, value: Value) -> bool:
    rule = machine.catalogue.calls.get(value.ref)
    name = str(value.ref).rpartition(".")[2]
    return rule is not None and (
        rule.result == "dtype" or name in {"int", "float", "bool", "complex", "str"}
    )


def _result(machine: Machine, rule: Rule, call: Call) -> Value:  # noqa: C901, PLR0911, PLR0912  (a table)
    node = call.node
    result = rule.result
    if result in _IMMUTABLE:
        if result == "none" and not machine.stack and call.target is None:
            _keep_place(machine, call, "waits")
        return _IMMUTABLE[result]
    match result:
        case "reduce":
            return _reduced(machine, call)
        case "array" | "score":
            frames = any(one.kind is Kind.FRAME for one in call.values)
            library = call.path.partition(".")[0] in _ARRAYS_ONLY
            return machine.make(Kind.FRAME if frames and library else Kind.ARRAY, node)
        case "arrays":
            return tuple_all(machine.make(Kind.ARRAY, node))
        case "frame":
            if not copies_on_write():
                machine.pin(node, "pandas before 3 may share memory with its input")
                return _sharing(machine, Kind.FRAME, call)
            return machine.make(Kind.FRAME, node)
        case "view":
            frames = any(one.kind is Kind.FRAME for one in call.values)
            return _sharing(machine, Kind.FRAME if frames else Kind.ARRAY, call)
        case "frame_over":
            if not all(copied_by_pandas(machine, one) for one in call.values):
                return machine.unproven(node, f"{call.path} of objects keeps the very objects")
            # It copies what comes in a dict or a list.
            arrays = [one for one in call.values if one.kind in {Kind.ARRAY, Kind.FRAME}]
            return _sharing(machine, Kind.FRAME, replace(call, positional=arrays, keywords={}))
        case "file":
            machine.pin(node, f"{call.path} reads a file")
            return machine.make(Kind.FRAME, node)
        case "result" | "hash":
            return machine.make(Kind.RESULT if result == "result" else Kind.HASH, node)
        case "list:str" | "list:array":
            held = STR if result == "list:str" else machine.make(Kind.ARRAY, node, tag="in")
            return machine.make_list(held, node)
        case "tuple:str":
            return tuple_all(STR)
        case "xy":
            return tuple_of(
                machine.make(Kind.ARRAY, node, tag="x"), machine.make(Kind.ARRAY, node, tag="y")
            )
        case "dataset":
            if call.constant("return_X_y", default=False) is True:
                return tuple_of(
                    machine.make(Kind.ARRAY, node, tag="x"), machine.make(Kind.ARRAY, node, tag="y")
                )
            return machine.make(Kind.RESULT, node)
        case "dict:score":
            made = machine.make(Kind.DICT, node)
            assert made.region is not None
            machine.heap.store(made.region, machine.make(Kind.ARRAY, node, tag="in"), STR)
            return made
        case "dtype":
            numbers = all(one.kind in SCALARS for one in call.values)
            return NUM if numbers else _sharing(machine, Kind.ARRAY, call)
        case "astype":
            return _astype(machine, call)
        case "exception":
            return UNKNOWN
        case "clock":
            if not machine.stack:
                _keep_place(machine, call, "reads the clock")
            return NUM
        case "product" | "combinations":
            return _tuples(machine, call, same_length=result == "product")
        case _:
            return _stateful(machine, rule, call)


def _reduced(machine: Machine, call: Call) -> Value:
    """Over all axes it is one number."""
    given = call.values if call.target is None else [call.target, *call.values]
    if len(given) == 1 and given[0].kind in {Kind.ARRAY, Kind.LIST, Kind.TUPLE, Kind.RESULT}:
        return NUM
    frames = any(one.kind is Kind.FRAME for one in given)
    return machine.make(Kind.FRAME if frames else Kind.ARRAY, call.node)


def _stateful(machine: Machine, rule: Rule, call: Call) -> Value:  # noqa: PLR0911  (a table)
    """Estimators and random generators: objects that change, and are changed."""
    node = call.node
    match rule.result:
        case "rng":
            if not call.values or call.values[0].kind is not Kind.INT:
                return machine.unproven(node, f"{call.path} without an integer seed")
            return machine.make(Kind.RNG, node)
        case "estimator":
            return machine.make(Kind.ESTIMATOR, node, ref=rule.keeps)
        case "pipeline":
            made = machine.make(Kind.ESTIMATOR, node, ref=True)
            _keep(machine, made, call)
            return made
        case "clone":
            kind = call.values[0] if call.values else UNKNOWN
            if kind.kind is not Kind.ESTIMATOR:
                return machine.unproven(node, f"{call.path} of {kind.kind.value}")
            return machine.make(Kind.ESTIMATOR, node, ref=kind.ref)
        case _:
            return _changing(machine, rule, call)


def _changing(machine: Machine, rule: Rule, call: Call) -> Value:
    assert call.target is not None
    node = call.node
    if not machine.heap.readable(call.target):
        return machine.unproven(node, f"{call.path}: its object is not fully known")
    machine.mutate(call.target, node, f"{call.path} changes its object")
    match rule.result:
        case "mutate":
            if call.target.region is not None:
                for value in call.values:
                    machine.heap.store(call.target.region, value)
            return NONE
        case "draws" | "mutate_array":
            _keep(machine, call.target, call)
            one = rule.result == "draws" and not call.values
            return NUM if one else machine.make(Kind.ARRAY, node)
        case "mutate_self":
            _keep(machine, call.target, call)
            return call.target
        case _:
            return machine.unproven(node, f"{call.path} is not modelled")


def _keep(machine: Machine, holder: Value, call: Call) -> None:
    """Note that an estimator may keep the objects that it was given."""
    if holder.kind is Kind.ESTIMATOR and holder.ref and holder.region is not None:
        for value in call.values:
            for region in machine.heap.reach(value):
                machine.heap.union(holder.region, region)


def _sharing(machine: Machine, kind: Kind, call: Call) -> Value:
    made = machine.make(kind, call.node)
    shared = [*call.values, *([call.target] if call.target is not None else [])]
    assert made.region is not None
    for value in shared:
        if value.kind in {Kind.ARRAY, Kind.FRAME, Kind.RESULT} | WITH_CONTENT | {Kind.TUPLE}:
            for region in machine.heap.reach(value):
                machine.heap.union(made.region, region)
    return made


def _astype(machine: Machine, call: Call) -> Value:
    given = call.node.args[0] if call.node.args else None
    constant = isinstance(given, ast.Constant)
    if constant or (call.values and call.values[0].kind is Kind.CALLABLE):
        return machine.make(Kind.ARRAY, call.node)
    return machine.unproven(call.node, "astype to a type that is not known beforehand")


def _tuples(machine: Machine, call: Call, *, same_length: bool) -> Value:
    elements = [iterate(machine, one, call.node) for one in call.positional]
    if same_length and "repeat" not in call.keywords:
        elem = tuple_of(*elements)
    else:
        elem = tuple_all(elements[0] if elements else BOTTOM)
    made = machine.make(Kind.ITER, call.node)
    return Value(Kind.ITER, region=made.region, elem=elem)


def _keep_place(machine: Machine, call: Call, what: str) -> None:
    if machine.effects.fence is None:
        machine.effects.fence = machine.placed(f"{call.path} {what}", call.node)


def copied_by_pandas(machine: Machine, value: Value) -> bool:
    """Whether a frame of this keeps no object that could change: rows or columns of scalars."""
    heap = machine.heap
    simple = SCALARS | {Kind.ARRAY, Kind.FRAME, Kind.BOTTOM, Kind.CALLABLE}

    def inner(one: Value) -> Value:
        if one.kind is Kind.TUPLE:
            return heap.any_item(one)
        known = one.kind in {Kind.LIST, Kind.DICT} and one.region is not None
        return heap.content(one.region or 0) if known else one

    if value.kind is Kind.DICT:  # columns
        column = inner(value)
        return column.kind in simple or inner(column).kind in SCALARS | {Kind.BOTTOM}
    row = inner(value)  # of a list of rows, or an item of a list
    return value.kind in simple or row.kind in simple or inner(row).kind in simple


def copies_on_write() -> bool:
    """Whether what pandas returns never shares changes with what it was made from."""
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        version = str(vars(pandas).get("__version__", "0"))
    else:
        version = metadata.version("pandas")
    major = version.partition(".")[0]
    return major.isdigit() and int(major) >= _COPY_ON_WRITE
