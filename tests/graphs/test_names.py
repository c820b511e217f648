from __future__ import annotations

import pytest

from tests.graphs.adversary import cell_of
from workbench.graphs.names import CellNames


def names(body: str) -> CellNames:
    return cell_of(body).names


@pytest.mark.parametrize(
    ("body", "reads", "writes"),
    [
        ("a = b + c", "b c", "a"),
        ("def f(x, y=k): return x + g", "k g", "f"),
        ("def f():\n    x = 1\n    return x", "", "f"),
        ("def f():\n    def g(): return x\n    x = 1\n    return g", "", "f"),
        ("def f():\n    global n\n    n = m", "m", "f n"),
        ("def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = y\n", "y", "f"),
        ("q = [i * k for i in xs if i > t]", "k xs t", "q"),
        ("q = [i for i in i]", "i", "q"),
        ("q = [j for i in xs for j in i]", "xs", "q"),
        ("q = [(w := i) for i in xs]", "xs", "q w"),
        ("f = lambda x, *a, **k: x + z + len(a)", "z len", "f"),
        ("class C(B):\n    x = y\n    def m(self): return x", "B y x", "C"),
        ("class C:\n    x = 1\n    z = x", "x", "C"),
        ("for i in xs: t += i", "i xs t", "i t"),
        ("with o() as (a, b): c = a", "o a", "a b c"),
        ("try:\n    x\nexcept E as e:\n    y = e", "x E e", "e y"),
        ("import a.b.c\nimport d.e as f\nfrom g import h as i, j", "", "a f i j"),
        ("x.y = 1\nx[k] = 2", "x k", ""),
        ("x += 1", "x", "x"),
        (
            "match v:\n    case {'k': a, **rest}: b = a\n    case [c, *d]: pass",
            "v a",
            "a rest b c d",
        ),
        ("f'{a} {b!r:>{w}}'", "a b w", ""),
        ("(y := x)", "x", "y"),
        ("a: int = b", "int b", "a"),
        ("out = !ls {d} $e", "get_ipython d e", "out"),
        ("%time y = f(x)", "get_ipython f x", "y"),
        ("%timeit -n 10 f(x)", "get_ipython f x", ""),
        ("%matplotlib inline", "get_ipython", ""),
    ],
)
def test_names_read_and_bound(body: str, reads: str, writes: str) -> None:
    found = names(body)
    assert found.opaque is None
    # By statement: what a cell binds itself before is not asked of the namespace.
    assert frozenset().union(*(one.reads for one in found.statements)) == set(reads.split())
    assert found.writes == set(writes.split())


def test_a_name_that_the_cell_surely_binds_first_is_not_needed() -> None:
    assert names("x = load()\ny = x + z").reads == {"load", "z"}


@pytest.mark.parametrize(
    "body", ["if c: x = 1\ny = x", "for i in c: x = 1\nx", "x = 1\ndel x\nx", "x: int\nx"]
)
def test_a_name_that_may_not_be_bound_is_needed(body: str) -> None:
    assert "x" in names(body).reads


def test_a_function_that_is_called_before_a_name_is_bound_needs_it() -> None:
    assert "k" in names("def f(): return k\ny = f()\nk = 1").reads


def test_deleted_names_are_told() -> None:
    assert names("x = 1\ndel x, y").deletes == {"x", "y"}


@pytest.mark.parametrize(
    "body",
    [
        "from m import *", "exec('q = 5')", "x = eval(s)", "globals()['a'] = 2", "locals()",
        "vars()", "%run other.py", "%store -r", "%who", "%reset -f", "get_ipython().user_ns",
        "def f(): exec('1')", "g = globals", "%time x = = 1", "!ls {x +}",
    ],
)  # fmt: skip
def test_what_may_read_any_name_is_opaque_and_says_where(body: str) -> None:
    found = names("a = 1\n" + body)
    assert found.opaque is not None
    assert found.opaque.startswith("line 3: ")


@pytest.mark.parametrize("body", ["vars(x)", "dir(x)", "def exec(s): return s\n", "%load_ext x"])
def test_what_reads_one_object_is_not_opaque(body: str) -> None:
    assert names(body).opaque is None
