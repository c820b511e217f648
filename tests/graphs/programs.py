"""Random small programs with aliases, mutation, functions, loops and failures."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
from hypothesis import strategies as st

NUMBERS = ["i", "j", "k"]
LISTS = ["p", "q", "r", "nested"]
ARRAYS = ["x", "y", "z"]
DICTS = ["d", "e"]
EVERY = [*NUMBERS, *LISTS, *ARRAYS, *DICTS]

LIVE = """
def double(v): return v * 2
def reads_i(v): return v + i
def grows(v):
    v.append(1)
    return len(v)
def keeps(v, held=[]):
    held.append(v)
    return len(held)
def sets_j(v):
    global j
    j = v
    return v
def same(v): return v
def first(v):
    best = None
    for one in v:
        if best is None or one < best:
            best = one
    return best
def counts(v):
    found = {}
    for one in range(v):
        found[one % 2] = found.get(one % 2, 0) + one
    return found
def reads_p(v): return sum(p) + v
def first_of(v): return first([v, 5])
def walks(v):
    total = 0
    v = min(v, 20)
    while v > 0:
        v = v - 1
        total += v
    return total
"""
HIDDEN = """
def hidden(v):
    v.append(9)
    p.append(8)
    x[0] = 7
def hidden_rebinds(v):
    global k, x
    k, x = v, y
    d[0] = v
class Loud:
    def __repr__(self): return "Loud"
    def __add__(self, other):
        print("adds")
        return other
    __radd__ = __add__
    def __mul__(self, other):
        p.append(1)
        return 1
def hidden_loud(v): v[0] = Loud()
"""
FUNCTIONS = [
    "double", "reads_i", "grows", "keeps", "sets_j", "same", "first", "counts", "reads_p", "walks"
]  # fmt: skip
FILENAME = "<live functions>"


def names(pool: list[str]) -> st.SearchStrategy[str]:
    # Mostly of the right kind, now and then of any.
    return st.one_of(*[st.sampled_from(pool)] * 15, st.sampled_from(EVERY))


@st.composite
def filled(draw: Any, templates: list[str]) -> str:
    template = draw(st.sampled_from(templates))
    return template.format(
        i=draw(names(NUMBERS)), j=draw(names(NUMBERS)), p=draw(names(LISTS)), q=draw(names(LISTS)),
        x=draw(names(ARRAYS)), y=draw(names(ARRAYS)), d=draw(names(DICTS)), a=draw(names(EVERY)),
        b=draw(names(EVERY)), f=draw(st.sampled_from(FUNCTIONS)), n=draw(st.integers(0, 4)),
    )  # fmt: skip


PURE = [
    "{i} = {n}", "{i} = {j} + {i}", "{p} = [{n}, {i}]", "{p} = [{q}, {n}]", "{i} = sum({p})",
    "{i} = len({a})", "{p} = sorted({q})", "{p} = list({q})", "{i} = {p}[0]", "{p} = {q}[1:]",
    "{p} = [v * 2 for v in {q}]", "{x} = np.arange(5.0)", "{i} = {x}.sum()", "{x} = {y} * 2",
    "{x} = {y}[:2]", "{x} = np.asarray({y})", "{x} = {y}.copy()", "{x} = np.sort({y})",
    "{x} = {y}[{y} > 1]", "{x} = np.array({p})", "{i} = np.mean({x})", "{d} = {{{n}: {i}}}",
    "{d} = {{'k': {p}}}", "{i} = {d}[{n}]", "{d} = dict({d})", "{p} = list({d}.items())",
    "{a} = {b}", "{a} = {b} if {i} else {p}", "{p} = {p} + {q}", "{p} = [{q}] * 2",
    "{i}, {j} = {n}, {i}", "{p}, {i} = {q}, {n}", "{a} = {f}({b})", "{i} = {f}({j})",
    "{p} = [{f}(v) for v in {q}]", "{p} = [{f}(v) for v in range({n})]",
    "{d} = {{v: {f}(v) for v in range({n})}}", "{i} = sum({f}(v) for v in {q})",
    "{p} = list(map({f}, range({n})))", "{x} = np.array([{f}(v) for v in range({n})])",
    "{p} = [{f}(v) for v in {x}]", "{p} = [u + {f}(v) for u in range(2) for v in range({n})]",
    "{a} = ({b}, {i})", "{a} = lambda v: v + {i}", "{i} = max({p})", "{i} = {x}[0]",
    "{i} = min({i}, {j})", "{a} = str({b})", "{i} = first([{i}, {j}])", "{p} = sorted({d})",
]  # fmt: skip
CHANGING = [
    "{i} += {j}", "{p} += [{n}]", "{p}.append({a})", "{p}.append({n})", "{p}[0] = {i}",
    "{p}[0] = {q}", "{p}.sort()", "{p}.extend({q})", "{x}[0] = {i}", "{x}[:] = {y}[0]",
    "{x} += 1", "{x}.sort()", "{d}[{n}] = {i}", "{d}['k'] = {p}", "{d}.update({d})",
    "{d}[{n}].append({i})", "nested[0].append({i})", "{f}({p})", "{f}({a})", "del {a}",
    "{p}.pop()", "{p}.clear()", "np.add({x}, 1, out={x})", "{i} = random.random()",
    "random.seed({n})", "{p} = {q}; {q}.append({n})", "{i} = np.random.rand()",
    "(lambda v: v.append({n}))({p})", "{p}.reverse(); {i} = {q}[0]",
]  # fmt: skip
# What loops over a list loops over a copy: with aliases it could go on for ever.
COMPOUND = [
    "for v in {p}[:3]: {q}.append(v)", "for v in range({n}): {p}.append({f}(v))",
    "for v in range({n}): {d}[v] = {f}(v)", "for v in range({n}): {i} += {f}(v)",
    "for {i} in range({n}):\n    w = {f}({i})\n    {p}.append(w)",
    "for v in {p}[:3]:\n    w = [v]\n    {q}.append(w)", "for v in {q}[1:]: {p}.append({f}(w))",
    "for v in {p}[:]:\n    {i} = {f}(v)\n    {d}[v] = {i} + {j}",
    "if {i} > 1:\n    {p} = {q}\nelse:\n    {p} = [1]", "while {i} > 0: {i} -= 1",
    "try:\n    {i} = 1 / {j}\nexcept ZeroDivisionError:\n    {i} = {n}",
    "def double(v): return v * {i}", "def same(v): return [v, {p}]",
    "def double(v):\n    {p}.append(v)\n    return v", "def first(v): return {f}(v)",
    "print({a})", "print({i}, {j})", "print({f}({i}))", "assert {i} < 9",
]  # fmt: skip


# Statements that seldom fail and keep every name's kind: what runs beside one another, and what
# comes between, is dense here.
GENTLE = [
    "{i} = {n}", "{i} = sum({p})", "{i} = {f}({j})", "{i} = max({i}, {j}) + 1", "{x} = {y} * 2",
    "{x} = np.sort({y})", "{i} = float(np.sum({x}))", "{p} = [{f}(v) for v in {q}]",
    "{p} = [{f}(v) + {i} for v in range(3)]", "{p} = sorted({q})", "{p} = [{i}, {j}, {n}]",
    "{i} = sum({f}(v) for v in {p})", "{i} = len({p}) + {d}.get({n}, 0)", "{x} = np.ones({n} + 1)",
    "{d} = {{v: {f}(v) for v in range(3)}}", "{x} = {y}.copy()", "{i} = int({x}.max())",
]  # fmt: skip
BETWEEN = [
    "{p} = {q}", "{p}.append({n})", "{p}.append({i})", "{p}[0] = {i}", "{x} = {y}", "{x}[0] = {n}",
    "{x} = {y}[:2]", "{x} += 1", "{d} = {d2}", "{d}[{n}] = {i}", "{i} += 1", "print({i}, {p})",
    "for v in range(3): {p}.append({f}(v))", "for v in range(3): {d}[v] = {f}(v)",
    "for v in range(3): {i} += {f}(v)", "for v in {p}[:3]: {i} += {f}(v)",
    "for {i} in range(3):\n    {j} = {f}({i})\n    {p}.append({j})",
    "for v in range(2):\n    {i} = {f}(v) + {j}\n    {p}.append({i})",
    "for v in range(3): {p}.append(reads_p(v))", "for v in range(3): {i} += {f}({i})",
    "def double(v): return v + {i}", "def double(v): return v + len({p})", *["hidden({p})", "hidden_rebinds({n})", "hidden_loud({p})"] * 3, "grows({p})", "if {i} > 2: {p}.append({n})",
    "if {i} > {j}: {p} = {q}", "{i}, {j} = {j}, {i}", "del {p}[0]", "{x}.sort()",
]  # fmt: skip


@st.composite
def gentle(draw: Any) -> str:
    def one(pool: list[str]) -> str:
        return draw(st.sampled_from(pool))

    template = draw(st.one_of(st.sampled_from(GENTLE), st.sampled_from(BETWEEN)))
    return template.format(
        i=one(NUMBERS), j=one(NUMBERS), p=one(["p", "q", "r"]), q=one(["p", "q", "r"]),
        x=one(ARRAYS), y=one(ARRAYS), d=one(DICTS), d2=one(DICTS), n=draw(st.integers(0, 4)),
        f=one(["double", "reads_i", "reads_p", "first_of", "walks", "sets_j"]),
    )  # fmt: skip


def gentle_programs() -> st.SearchStrategy[str]:
    return st.lists(gentle(), min_size=3, max_size=10).map("\n".join)


def statements() -> st.SearchStrategy[str]:
    return st.one_of(filled(PURE), filled(PURE), filled(CHANGING), filled(COMPOUND))


def programs() -> st.SearchStrategy[str]:
    return st.lists(statements(), min_size=2, max_size=9).map("\n".join)


@st.composite
def starts(draw: Any) -> tuple[int, ...]:
    return tuple(draw(st.integers(0, 2)) for _ in range(4))


def namespace(start: tuple[int, ...]) -> dict[str, Any]:
    """Names before the cell, some of which are one object or share memory."""
    import random

    alias_lists, alias_arrays, nesting, alias_dicts = start
    made: dict[str, Any] = {"np": np, "random": random, "i": 3, "j": 1, "k": 0, "w": 2}
    lines = LIVE.splitlines(keepends=True)
    linecache.cache[FILENAME] = (len(LIVE), None, lines, FILENAME)
    exec(compile(LIVE, FILENAME, "exec"), made)
    exec(compile(HIDDEN, "<no source>", "exec"), made)
    p = [3, 1, 2]
    made["p"], made["q"] = p, (p if alias_lists == 1 else [2, 0])
    made["r"] = made["q"] if alias_lists == 2 else [1]
    x = np.arange(4.0)
    made["x"], made["y"] = x, (x[1:] if alias_arrays == 1 else np.ones(3))
    made["z"] = x if alias_arrays == 2 else np.zeros(2)
    made["nested"] = [p, made["r"]] if nesting == 1 else [[1], [2]] if nesting else [x]
    d: dict[Any, Any] = {0: 1, 1: 2}
    d |= {"k": p} if alias_dicts == 1 else {}
    made["d"], made["e"] = d, (d if alias_dicts == 2 else {2: 5})
    return made
