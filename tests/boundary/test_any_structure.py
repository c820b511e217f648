"""Whatever is built and whatever is done to it: the result is that of in-order execution."""

import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from tests.boundary.two_sides import FarSide, Notebook, check_as_in_order, new_world

TOOLS = """
import numpy as np
from collections import OrderedDict, deque
class Node: pass
class Bag(list): pass
class Slot:
    __slots__ = ('a', 'b')
def closure(x):
    def get(*new):
        nonlocal x
        if new: x, = new
        return x
    return get
def act(x, n, y):
    if isinstance(x, list):
        [lambda: x.append(y), lambda: x.insert(0, y), lambda: x and x.pop(), x.clear, x.reverse,
         lambda: x.extend([y, n])][n % 6]()
    elif isinstance(x, OrderedDict) and x and n % 2:
        x.move_to_end(next(iter(x)))
    elif isinstance(x, dict):
        [lambda: x.update({n: y}), lambda: x.update({'k': y}), lambda: x and x.popitem(), x.clear,
         lambda: x.pop('k', 0)][n % 5]()
    elif isinstance(x, set):
        [lambda: x.add(n), lambda: x and x.pop(), x.clear, lambda: x.discard(3)][n % 4]()
    elif isinstance(x, deque):
        [lambda: x.append(y), lambda: x.rotate(1), x.clear][n % 3]()
    elif isinstance(x, bytearray):
        x.extend(b'xy'[: n % 3])
        x[0] = n % 256
    elif isinstance(x, np.ndarray):
        x[n % len(x)] = n
    elif isinstance(x, Node):
        [lambda: setattr(x, 'a', y), lambda: setattr(x, 'b', n), lambda: x.__dict__.pop('a', 0)][n % 3]()
    elif isinstance(x, Slot):
        setattr(x, 'ab'[n % 2], y)
    elif isinstance(x, type):
        x.shared = y
    elif callable(x):
        x(y) if n % 2 else setattr(x, 'note', y)
a, b, c, d = [], {}, Node, None
"""
NAMES = st.sampled_from("abcd")
MAKE = [
    "{x} = []", "{x} = [{y}, {z}, {n}]", "{x} = {{'k': {y}, {n}: {z}}}", "{x} = OrderedDict(k={y}, j={z})",
    "{x} = {{{n}, 3}}", "{x} = ({y}, {z})", "{x} = deque([{y}])", "{x} = bytearray(b'abc')", "{x} = Node()",
    "{x} = Slot()", "{x} = Bag([{y}])", "{x} = closure({y})", "{x} = np.arange({n} % 5 + 2.)", "{x} = {y}",
    "{x} = {y}[1:] if isinstance({y}, np.ndarray) and len({y}) > 2 else {n}",
    "{x} = np.array([{y}, {n}, None], dtype=object)[:2] if not isinstance({y}, np.ndarray) else {y}[::-1]",
    "{x} = type('T', (Node,), {{'v': [{y}]}})", "{x} = Node(); {x}.a = {y}; {x}.me = {x}", "{x} = 'text' * {n}",
]  # fmt: skip
DO = ["act({x}, {n}, {y})"] * 20


def statements(templates: list[str]) -> st.SearchStrategy[str]:
    made = st.builds(
        lambda template, x, y, z, n: template.format(x=x, y=y, z=z, n=n),
        st.sampled_from(templates), NAMES, NAMES, NAMES, st.integers(0, 9),
    )  # fmt: skip
    return st.lists(made, min_size=1, max_size=12).map("\n".join)


IMPORTED = ("environment", "filters")
"""What the very first import of numpy's tools changes; no statement here does."""


@settings(
    derandomize=True, max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(before=statements(MAKE + DO), cell=statements(MAKE + DO))
def test_as_in_order(far_side: FarSide, before: str, cell: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        notebook = Notebook(far_side, Path(directory), new_world())
        check_as_in_order(notebook, TOOLS + before, "a, b, c, d, act\n" + cell, unsteady=IMPORTED)
