from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.graphs.adversary import cell_of, check
from workbench.graphs.plan import make_plan
from workbench.protocol.plan import Node, NodeKind

FUNCTIONS = """
def f(x):
    return x * 2 + 1
def g(x):
    if x == 2:
        raise ValueError(x)
    return [x]
"""


def namespace() -> dict[str, Any]:
    cell = cell_of(FUNCTIONS)
    made: dict[str, Any] = {"np": np, "xs": [1, 2, 3], "d": {"a": 1, "b": 2}, "old": [0], "t": 5}
    for one in cell.statements:
        exec(cell.compile(one.node), made)
    return made


def last(source: str) -> Node:
    return make_plan(cell_of(source), namespace(), split="auto", cores_available=4).nodes[-1]


MAPS = [
    ("r = [f(x) for x in xs]", 3),
    ("[f(x) for x in xs]", 3),
    ("r = [f(x) for x in range(7)]", 7),
    ("n = 4\nr = [f(x) for x in range(n)]", 4),
    ("r = [f(a + b) for a in range(2) for b in xs]", 6),
    ("r = {x: f(x) for x in xs}", 3),
    ("r = {f(x) for x in range(3)}", 3),
    ("r = {k: f(v) for k, v in d.items()}", 2),
    ("r = [f(i) + v for i, v in enumerate(xs)]", 3),
    ("r = [f(a) + b for a, b in zip(xs, (4, 5))]", 2),
    ("r = [f(x) for x in np.arange(3)]", None),
    ("r = list(map(f, xs))", 3),
    ("r = list(map(lambda v: f(v) + t, xs))", 3),
    ("r = list(f(x) for x in xs)", 3),
    ("r = sum(f(x) for x in xs)", 3),
    ("r = max(f(x) for x in xs)", 3),
    ("r = np.mean([f(x) for x in xs])", 3),
    ("a, b = [f(x) for x in range(2)]", 2),
    ("r = []\nfor x in xs: r.append(f(x))", 3),
    ("for x in xs: old.append(f(x))", 3),
    ("same = old\nfor x in xs: old.append(f(x))", 3),
    ("r = {}\nfor k in xs: r[k] = f(k)", 3),
    ("r = {}\nfor k, v in d.items(): r[k] = f(v)", 2),
    ("for x in xs: t += f(x)", 3),
    ("r = []\nfor x in xs:\n    y = f(x)\n    z = y + t\n    r.append([y, z])", 3),
    ("r = []\nfor x in []: r.append(f(x))", 0),
    ("r = []\nfor x in range(5): r.append(g(x))", 5),
    ("r = []\nfor x in range(5):\n    y = f(x)\n    z = g(x)\n    r.append(z)", 5),
    ("r = [g(x) for x in range(4)]", 4),
    ("for x in range(4): d[x] = g(x)", 4),
    ("for x in xs: t += f(x) // (x - 2)", 3),
]


@pytest.mark.parametrize(("source", "width"), MAPS)
def test_a_loop_over_independent_items_is_a_map_and_gives_the_same(
    source: str, width: int | None
) -> None:
    node = last(source)
    assert (node.kind, node.width) == (NodeKind.MAP, width), node.reason
    check(source, namespace, orders=10)


NOT_MAPS = [
    "r = [x for x in xs]",
    "r = [x * 2 for x in range(3)]",
    "r = [f(x) for x in xs if x > 1]",
    "r = [f(x) for row in [xs, xs] for x in row]",
    "r = [(w := f(x)) for x in xs]",
    "for x in xs[:]: xs.append(f(x))\nfor x in xs: xs.append(f(x)) if len(xs) < 9 else None",
    "r = []\nfor x in xs: r.append(f(x) + len(r))",
    "r = []\ny = 0\nfor x in xs:\n    y = f(x) + y\n    r.append(y)",
    "r = [[0]]\nfor x in xs: r.append(r[0])",
    "def h(): return x\nx = 9\nr = []\nfor x in xs: r.append(f(h()))",
    "def h(v):\n    return f(v) + sum(r)\nr = []\nfor x in xs: r.append(h(x))",
    "r = []\nq = r\ndef h(v):\n    return f(v) + len(q)\nfor x in xs: r.append(h(x))",
    "r = [f(x) for x in xs]\nr.append(1)\nfor x in [r]: r.append(f(1))",
    "acc = []\ndef h(v):\n    acc.append(v)\n    return v\nr = [h(x) for x in xs]",
    "r = any(f(x) > 2 for x in xs)",
    "r = []\nfor x in xs:\n    r.append(f(x))\nelse:\n    t = 1",
    "r = []\nfor x in xs:\n    if x == 2: break\n    r.append(f(x))",
    "r = []\nfor x in xs:\n    print(x)\n    r.append(f(x))",
    "r = [[f(x), shared] for shared in [[]] for x in xs]",
    "it = iter(xs)\nr = [f(x) for x in it]",
    "map = filter\nr = list(map(f, xs))",
    "sum = list\nr = sum(f(x) for x in xs)",
]


@pytest.mark.parametrize("source", NOT_MAPS)
def test_a_loop_whose_items_are_not_independent_is_no_map(source: str) -> None:
    assert last(source).kind is not NodeKind.MAP
    check(source, namespace, orders=10)


def test_loop_variables_end_as_in_the_last_round_and_names_stay_as_they_were_without_one() -> None:
    check("x = y = 7\nr = []\nfor x in []:\n    y = f(x)\n    r.append(y)\nz = x + y", namespace)
    check(
        "r = []\nfor x in xs:\n    y = [f(x)]\n    r.append(y)\nr[-1].append(x)\nz = y", namespace
    )
