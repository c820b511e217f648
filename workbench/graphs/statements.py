"""The abstract run of statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any, Final

from workbench.graphs.calls import library_value
from workbench.graphs.expressions import assign, evaluate, make_closure
from workbench.graphs.machine import Frame, Machine
from workbench.graphs.operators import augmented, iterate, short, subscript, test
from workbench.graphs.values import NONE, UNKNOWN, Kind, Value

_Scope = Frame | None


def execute(machine: Machine, node: ast.stmt, frame: _Scope) -> None:
    """Note what a statement may do."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        machine.unproven(node, f"`{type(node).__name__.lower()}` is not followed")
    else:
        handler(machine, node, frame)


def execute_all(machine: Machine, nodes: Iterable[ast.stmt], frame: _Scope) -> None:
    """Note what a block may do: any of its statements, in any order."""
    for node in nodes:
        execute(machine, node, frame)


def _expression(machine: Machine, node: ast.Expr, frame: _Scope) -> None:
    evaluate(machine, node.value, frame)


def _assign(machine: Machine, node: ast.Assign, frame: _Scope) -> None:
    value = evaluate(machine, node.value, frame)
    for target in node.targets:
        assign(machine, target, value, frame)


def _annotated(machine: Machine, node: ast.AnnAssign, frame: _Scope) -> None:
    if frame is None:
        evaluate(machine, node.annotation, frame)
        machine.pin(node, "the annotation is kept with the notebook's own")
    if node.value is not None:
        assign(machine, node.target, evaluate(machine, node.value, frame), frame)


def _augmented(machine: Machine, node: ast.AugAssign, frame: _Scope) -> None:
    new = evaluate(machine, node.value, frame)
    target = node.target
    if isinstance(target, ast.Name):
        old = machine.lookup(target.id, frame)
        machine.bind(target.id, augmented(machine, old, node.op, new, node), frame)
    elif isinstance(target, ast.Subscript):
        base = evaluate(machine, target.value, frame)
        index = evaluate(machine, target.slice, frame)
        item = subscript(machine, base, index, target)
        value = augmented(machine, item, node.op, new, node)
        assign(machine, target, value, frame)
    else:
        machine.unproven(node, f"{short(node)} changes an attribute")


def _return(machine: Machine, node: ast.Return, frame: _Scope) -> None:
    value = NONE if node.value is None else evaluate(machine, node.value, frame)
    while frame is not None and frame.comprehension:
        frame = frame.parent
    assert frame is not None
    joined = machine.heap.join(frame.result, value)
    if joined != frame.result:
        frame.result = joined
        frame.version += 1


def _if(machine: Machine, node: ast.If, frame: _Scope) -> None:
    test(machine, evaluate(machine, node.test, frame), node.test)
    execute_all(machine, [*node.body, *node.orelse], frame)


def _while(machine: Machine, node: ast.While, frame: _Scope) -> None:
    machine.effects.work = True

    def once() -> None:
        test(machine, evaluate(machine, node.test, frame), node.test)
        execute_all(machine, [*node.body, *node.orelse], frame)

    machine.settle(once, node, frame)


def _for(machine: Machine, node: ast.For, frame: _Scope) -> None:
    machine.effects.work = True
    items = evaluate(machine, node.iter, frame)

    def once() -> None:
        assign(machine, node.target, iterate(machine, items, node.iter), frame)
        execute_all(machine, [*node.body, *node.orelse], frame)

    machine.settle(once, node, frame)


def _try(machine: Machine, node: ast.Try, frame: _Scope) -> None:
    def once() -> None:
        execute_all(machine, [*node.body, *node.orelse, *node.finalbody], frame)
        for handler in node.handlers:
            if handler.type is not None:
                _exception_type(machine, handler.type, frame)
            if handler.name is not None:
                machine.bind(handler.name, UNKNOWN, frame)
            execute_all(machine, handler.body, frame)

    machine.settle(once, node, frame)


def _exception_type(machine: Machine, node: ast.expr, frame: _Scope) -> None:
    value = evaluate(machine, node, frame)
    for one in value.items if value.items is not None else (value,):
        rule = machine.catalogue.calls.get(one.ref) if one.kind is Kind.CALLABLE else None
        if rule is None or rule.result != "exception":
            machine.unproven(node, f"catches {short(node)}, which is not one of Python's own")


def _raise(machine: Machine, node: ast.Raise, frame: _Scope) -> None:
    for one in (node.exc, node.cause):
        if one is not None:
            evaluate(machine, one, frame)
            made = evaluate(machine, one.func if isinstance(one, ast.Call) else one, frame)
            rule = machine.catalogue.calls.get(made.ref) if made.kind is Kind.CALLABLE else None
            if rule is None or rule.result != "exception":
                machine.unproven(node, f"raises {short(one)}, which is not one of Python's own")


def _assert(machine: Machine, node: ast.Assert, frame: _Scope) -> None:
    test(machine, evaluate(machine, node.test, frame), node.test)
    if node.msg is not None:
        evaluate(machine, node.msg, frame)


def _function(machine: Machine, node: ast.FunctionDef, frame: _Scope) -> None:
    value = make_closure(machine, node, frame)
    annotations = [one.annotation for one in [*node.args.args, *node.args.kwonlyargs]]
    for one in [*annotations, node.returns]:
        if one is not None:
            _annotation(machine, one, frame)
    for decorator in node.decorator_list:
        evaluate(machine, decorator, frame)
        machine.unproven(decorator, f"@{short(decorator)[1:-1]} may do anything to {node.name}")
        value = UNKNOWN
    machine.bind(node.name, value, frame)


def _annotation(machine: Machine, node: ast.expr, frame: _Scope) -> None:
    """Annotations such as `int`, `np.ndarray` and `list[int] | None` run no code of the user's."""
    match node:
        case ast.Name() | ast.Constant():
            evaluate(machine, node, frame)
        case ast.BinOp(op=ast.BitOr()) | ast.Tuple():
            for one in ast.iter_child_nodes(node):
                if isinstance(one, ast.expr):
                    _annotation(machine, one, frame)
        case ast.Subscript(value=ast.Name()) | ast.Attribute(value=ast.Name()):
            base = evaluate(machine, node.value, frame)
            if base.kind not in {Kind.CALLABLE, Kind.MODULE}:
                machine.unproven(node, f"the annotation {short(node)} is not followed")
            if isinstance(node, ast.Subscript):
                _annotation(machine, node.slice, frame)
        case _:
            evaluate(machine, node, frame)


def _class(machine: Machine, node: ast.ClassDef, frame: _Scope) -> None:
    simple = (ast.FunctionDef, ast.Pass)
    plain = all(
        (isinstance(one, simple) and not getattr(one, "decorator_list", []))
        or (isinstance(one, ast.Expr | ast.Assign) and isinstance(one.value, ast.Constant))
        for one in node.body
    )
    defaults = [
        default
        for one in node.body
        if isinstance(one, ast.FunctionDef)
        for default in [*one.args.defaults, *one.args.kw_defaults]
        if default is not None and not isinstance(default, ast.Constant)
    ]
    if not plain or node.bases or node.keywords or node.decorator_list or defaults:
        machine.unproven(node, f"the body of class {node.name} may do anything")
    machine.bind(node.name, UNKNOWN, frame)


def _import(machine: Machine, node: ast.Import, frame: _Scope) -> None:
    for alias in node.names:
        _imports(machine, alias.name, node)
        bound = alias.name if alias.asname else alias.name.partition(".")[0]
        known = machine.catalogue.is_module(bound)
        value = Value(Kind.MODULE, ref=bound) if known else UNKNOWN
        machine.bind(alias.asname or bound, value, frame)


def _import_from(machine: Machine, node: ast.ImportFrom, frame: _Scope) -> None:
    module = node.module or ""
    if module == "__future__":
        return
    if node.level or any(alias.name == "*" for alias in node.names):
        machine.unproven(node, "imports names that are not known beforehand")
    _imports(machine, module, node)
    for alias in node.names:
        path = f"{module}.{alias.name}"
        known = machine.catalogue.is_module(module)
        value = library_value(machine, path) if known else UNKNOWN
        machine.bind(alias.asname or alias.name, value, frame)


def _imports(machine: Machine, module: str, node: ast.AST) -> None:
    if not machine.catalogue.imports_quietly(module):
        machine.unproven(node, f"imports {module or 'from the notebook folder'}, which runs it")


def _delete(machine: Machine, node: ast.Delete, frame: _Scope) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            _delete_name(machine, target, frame)
        elif isinstance(target, ast.Subscript):
            base = evaluate(machine, target.value, frame)
            evaluate(machine, target.slice, frame)
            if base.kind in {Kind.LIST, Kind.DICT}:
                machine.mutate(base, node, f"{short(node)} changes {base.kind.value}")
            else:
                machine.unproven(node, f"deletes an item of {base.kind.value}")
        else:
            machine.unproven(node, f"{short(node)} is not followed")


def _delete_name(machine: Machine, target: ast.Name, frame: _Scope) -> None:
    if frame is not None and target.id in frame.local:
        return
    if frame is not None:
        machine.unproven(target, f"deletes `{target.id}`, which is not its own")
    elif machine.lookup(target.id, None).kind is Kind.UNKNOWN:
        machine.unproven(target, f"`{target.id}` may run code of its own when it is deleted")
    machine.unbind(target.id)


def _nothing(machine: Machine, node: ast.stmt, frame: _Scope) -> None:
    """`pass`, `break`, `continue`, `global`, `nonlocal`: nothing beyond what is assumed anyway."""
    del machine, node, frame


_HANDLERS: Final[dict[type[ast.stmt], Callable[[Machine, Any, _Scope], None]]] = {
    ast.Expr: _expression, ast.Assign: _assign, ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented, ast.Return: _return, ast.If: _if, ast.While: _while,
    ast.For: _for, ast.Try: _try, ast.Raise: _raise, ast.Assert: _assert,
    ast.FunctionDef: _function, ast.ClassDef: _class, ast.Import: _import,
    ast.ImportFrom: _import_from, ast.Delete: _delete, ast.Pass: _nothing,
    ast.Break: _nothing, ast.Continue: _nothing, ast.Global: _nothing, ast.Nonlocal: _nothing,
}  # fmt: skip
