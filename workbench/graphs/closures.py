"""Calls of functions whose source is known, followed with what they are given."""

from __future__ import annotations

import ast
from typing import Final

from workbench.graphs.expressions import evaluate
from workbench.graphs.machine import NOTHING, Closure, Frame, Machine
from workbench.graphs.statements import execute_all
from workbench.graphs.values import BOTTOM, NONE, STR, Kind, Value, tuple_all

_DEEPEST: Final = 12
_NEVER: Final = -1


def invoke(
    machine: Machine,
    closure: Closure,
    positional: list[Value],
    keywords: dict[str, Value],
    node: ast.AST,
) -> Value:
    """Follow a call of a notebook function.

    Every statement of its body counts, in any order; what it returns is the join of all its
    `return`s. A recursive call gives what is known of the result so far, until nothing changes.
    """
    if closure.barred is not None:
        return machine.unproven(node, f"{closure.name} {closure.barred}")
    bound = _parameters(machine, closure, positional, keywords, node)
    if bound is None:
        return machine.unproven(node, f"{closure.name} is called in a way that is not followed")
    key = (closure, *bound.items())
    depth = machine.running.get(key)
    known = machine.memo.get(key)
    if depth is not None:
        # What the caller makes of this is not its last word.
        machine.unfinished = min(machine.unfinished, depth)
        return BOTTOM if known is None else known[1]
    if known is not None and known[0] == _knowledge(machine):
        return known[1]
    if len(machine.stack) >= _DEEPEST:
        return machine.unproven(node, "calls go too deep to follow")
    return _run(machine, closure, bound, key)


def _run(
    machine: Machine, closure: Closure, bound: dict[str, Value], key: tuple[object, ...]
) -> Value:
    frame = Frame(local=closure.local, parent=closure.parent)
    frame.values.update(bound)
    body = closure.node

    def once() -> None:
        known = frame.result
        machine.memo[key] = (_NEVER, known)
        if isinstance(body, ast.Lambda):
            frame.result = machine.heap.join(known, evaluate(machine, body.body, frame))
        else:
            execute_all(machine, body.body, frame)
            if not isinstance(body.body[-1], ast.Return):
                frame.result = machine.heap.join(frame.result, NONE)
        frame.version += known != frame.result

    depth = machine.running[key] = len(machine.stack)
    machine.stack.append(f"`{closure.name}`")
    try:
        machine.settle(once, body, frame)
    finally:
        machine.stack.pop()
        del machine.running[key]
    # An inner function may see its parent's locals change without any of this being told.
    final = closure.parent is None and machine.unfinished >= depth
    machine.memo[key] = (_knowledge(machine) if final else _NEVER, frame.result)
    if machine.unfinished >= depth:
        machine.unfinished = NOTHING
    return frame.result


def _knowledge(machine: Machine) -> int:
    """Return a number that grows with all that a function of the notebook can see."""
    return machine.heap.version + machine.names_version


def _parameters(
    machine: Machine,
    closure: Closure,
    positional: list[Value],
    keywords: dict[str, Value],
    node: ast.AST,
) -> dict[str, Value] | None:
    """Return the values of the parameters; None for a call that raises or is not followed."""
    arguments = closure.node.args
    names = [one.arg for one in [*arguments.posonlyargs, *arguments.args]]
    with_default = names[len(names) - len(closure.defaults) :]
    bound = dict(zip(with_default, closure.defaults, strict=True))
    bound |= closure.keyword_defaults
    bound |= dict(zip(names, positional, strict=False))
    left = positional[len(names) :]
    if arguments.vararg is not None:
        joined = BOTTOM
        for value in left:
            joined = machine.heap.join(joined, value)
        bound[arguments.vararg.arg] = tuple_all(joined)
    elif left:
        return None
    known = {*names, *(one.arg for one in arguments.kwonlyargs)}
    extra = {name: value for name, value in keywords.items() if name not in known}
    bound |= {name: value for name, value in keywords.items() if name in known}
    if arguments.kwarg is not None:
        made = machine.make(Kind.DICT, node, tag="kwargs")
        assert made.region is not None
        for value in extra.values():
            machine.heap.store(made.region, value, STR)
        bound[arguments.kwarg.arg] = made
    elif extra:
        return None
    return bound if known <= set(bound) else None
