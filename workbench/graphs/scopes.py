"""Which names a function binds, as Python's own scoping rules have it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(slots=True)
class Bindings:
    """Names that a block of code binds in its own scope, and those it declares elsewhere."""

    bound: set[str] = field(default_factory=set)
    global_: set[str] = field(default_factory=set)
    nonlocal_: set[str] = field(default_factory=set)


def function_bindings(node: FunctionNode) -> Bindings:
    """Return what a function binds: its parameters and every name that its body stores."""
    found = bindings([node.body] if isinstance(node, ast.Lambda) else node.body)
    found.bound.update(parameters(node.args))
    found.bound -= found.global_ | found.nonlocal_
    return found


def parameters(arguments: ast.arguments) -> list[str]:
    """Return the names of all parameters, the starred ones too."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return [one.arg for one in every]


def bindings(body: Iterable[ast.AST]) -> Bindings:
    """Return what a block binds in its own scope."""
    found = Bindings()
    for node in same_scope(body):
        _add(node, found)
    return found


def target_names(target: ast.expr) -> list[str]:
    """Return the names that an assignment target binds."""
    return [
        node.id
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def _add(node: ast.AST, found: Bindings) -> None:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            found.bound.add(name)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            found.bound.add(node.name)
        case ast.Import():
            found.bound.update(one.asname or one.name.partition(".")[0] for one in node.names)
        case ast.ImportFrom():
            found.bound.update(one.asname or one.name for one in node.names if one.name != "*")
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            found.bound.add(name)
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            found.bound.add(name)
        case ast.Global():
            found.global_.update(node.names)
        case ast.Nonlocal():
            found.nonlocal_.update(node.names)
        case _:
            pass


def same_scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Walk a scope without entering functions, classes, or the targets of comprehensions."""
    pending = list(body)
    while pending:
        node = pending.pop()
        yield node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
                pending += outer_parts(node)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                pending += (one for one in _walrus(node))
            case _:
                pending += ast.iter_child_nodes(node)


def _walrus(node: ast.AST) -> Iterator[ast.Name]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name):
            yield inner.target


def outer_parts(node: FunctionNode | ast.ClassDef) -> list[ast.AST]:
    """Return what the enclosing scope evaluates: decorators, defaults, annotations, bases."""
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *(one.value for one in node.keywords)]
    arguments = node.args
    parts: list[ast.AST | None] = [*arguments.defaults, *arguments.kw_defaults]
    if not isinstance(node, ast.Lambda):
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parts += [one.annotation for one in every]
        parts += [one.annotation for one in (arguments.vararg, arguments.kwarg) if one is not None]
        parts += [node.returns, *node.decorator_list]
    return [one for one in parts if one is not None]
