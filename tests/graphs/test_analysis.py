from __future__ import annotations

import linecache
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.graphs.adversary import beside, cell_of, check, kinds, nothing
from workbench.graphs.plan import make_plan
from workbench.protocol.plan import Plan


def plan_of(source: str, namespace: dict[str, Any] | None = None) -> Plan:
    return make_plan(cell_of(source), namespace or {}, split="auto", cores_available=4)


def last(source: str, namespace: dict[str, Any] | None = None) -> tuple[str, str]:
    node = plan_of(source, namespace).nodes[-1]
    return node.kind.value, node.reason


PROVEN = [
    "x = sum(range(10))",
    "x = [v * 2 for v in range(3)]",
    "x = {'a': [1, 2], 'b': (3, 'c')}",
    "x, y = 1, 2",
    "x = y = [1]",
    "import math\nx = math.sqrt(2) + math.pi",
    "import numpy as np\nx = np.random.default_rng(0).normal(size=3)",
    "import numpy as np\nx = np.linalg.svd(np.ones((2, 2)))",
    "from numpy.linalg import norm as n\nx = n([1, 2])",
    "import hashlib\nx = hashlib.sha256(b'a').hexdigest()",
    "import statistics as s\nx = s.mean([1, 2, 3])",
    "x = ', '.join(str(v) for v in range(3))",
    "x = sorted([3, 1], key=lambda v: -v)",
    "x = max([1, 2], default=None)",
    "x = 'a b'.split()",
    "d = {'a': 1}\nx = max(d, key=d.get)",
    "x = f'{1 + 1:>3}'",
    "def f(n):\n    return 1 if n < 2 else f(n - 1) + f(n - 2)\nx = f(5)",
    "def f(n):\n    out = []\n    for i in range(n):\n        out.append(i)\n    return out\nx = f(3)",
    "def f(v):\n    try:\n        return 1 / v\n    except ZeroDivisionError:\n        return 0\nx = f(0)",
    "def f(v):\n    if v < 0:\n        raise ValueError('negative')\n    return v\nx = f(1)",
    "def f(v):\n    def g(u): return u + v\n    return [g(1), g(2)]\nx = f(1)",
    "def f(a, *more, k=1, **named): return a + k\nx = f(1, 2, 3, k=4, z=5)",
    "import time\ndef f(s):\n    time.sleep(s)\n    return s\nx = f(0)",
    "import time\ndef f(s):\n    end = time.perf_counter() + s\n    n = 0\n"
    "    while time.perf_counter() < end: n += 1\n    return s\nx = f(0)",
    "from sklearn.svm import SVC\nfrom sklearn.datasets import load_digits\n"
    "X, y = load_digits(return_X_y=True)\nx = SVC(random_state=0).fit(X[:50], y[:50])",
    "import sklearn.datasets as d, sklearn.model_selection as m, sklearn.tree as t\n"
    "X, y = d.load_iris(return_X_y=True)\n"
    "x = m.cross_val_score(t.DecisionTreeClassifier(random_state=0), X, y, cv=3)",
    "import pandas as pd\nimport numpy as np\n"
    "x = pd.DataFrame({'k': [1, 1, 2], 'v': [1., 2., 3.]}).groupby('k').mean()",
]  # fmt: skip


@pytest.mark.parametrize("source", PROVEN)
def test_what_is_proven_becomes_a_task_and_gives_the_same(source: str) -> None:
    kind, reason = last(source)
    assert kind == "task", reason
    check(source, nothing, orders=3)


BARRIERS = [
    ("print(1)", "keeps its place in the output"),
    ("open('/dev/null').read()", "calls `open`"),
    ("import random\nx = random.random()", "random state that the whole notebook shares"),
    ("import numpy as np\nx = np.random.rand(3)", "random state that the whole notebook shares"),
    ("import numpy as np\nx = np.random.default_rng().normal()", "without an integer seed"),
    ("from sklearn.tree import DecisionTreeClassifier\nx = DecisionTreeClassifier()",
     "pass random_state= an integer"),
    ("from sklearn.linear_model import LogisticRegression as L\nx = L(solver='saga')",
     "pass random_state= an integer"),
    ("from sklearn.naive_bayes import GaussianNB as G\nfrom sklearn.model_selection import cross_val_score as c\n"
     "x = c(G(), [[1.], [2.]], [0, 1], n_jobs=2)", "n_jobs="),
    ("import numpy as np\na = np.zeros(3)\nb = np.abs(a, a)", "more than 1 positional"),
    ("import numpy as np\na = np.zeros(3)\nnp.add(a, 1, out=a)", "out= is not among"),
    ("import numpy as np\na = np.zeros(3)\nb = np.nan_to_num(a, copy=False)", "copy= is not"),
    ("import numpy as np\na = np.zeros(3)\nb = a[:2]", "may share memory"),
    ("import numpy as np\na = np.zeros(3)\nb = np.asarray(a)", "may share memory"),
    ("import numpy as np\na = np.zeros(3)\nb = np.histogram(a, a)", "not plain numbers"),
    ("import numpy as np\nx = np.array([{}])", "is given a dict"),
    ("import numpy as np\nx = np.zeros(3, dtype=object)", "is given a value of unknown type"),
    ("import numpy as np\nx = np.zeros(3, dtype='O')", "array of objects"),
    ("import numpy as np\nx = np.frompyfunc(len, 1, 1)", "not among the calls known"),
    ("import time\nt = time.perf_counter()", "reads the clock"),
    ("import time\ntime.sleep(0)", "waits"),
    ("a = [1]\nb = a", "may share memory"),
    ("a = 1\nb = a", "another name for `a`"),
    ("a = [[1]]\nb = a[0]", "may share memory"),
    ("x = lambda: 1", "a notebook function"),
    ("x = {1, 2}", "a set"),
    ("x = (v for v in [1])", "an iterator"),
    ("s = {'a', 'b'}\nx = list(s)", "order of a set"),
    ("class C: pass\nc = C()", "calls `C`"),
    ("x = 1\nx.y = 2", "changes"),
    ("def f(v, held=[]):\n    held.append(v)\n    return 1\nx = f(1)", "in `f`, line 3"),
    ("n = 0\ndef f():\n    global n\n    n += 1\n    return n\nx = f()", "also binds `n`"),
    ("def f(v):\n    print(v)\n    return v\nx = f(1)", "keeps its place in the output (in `f`"),
    ("def f(v): yield v\nx = list(f(1))", "is a generator"),
    ("def f(n): return g(n)\nx = f(1)", "calls `g`"),
    ("import functools\n@functools.lru_cache\ndef f(x): return x\ny = f(1)", "calls `f`"),
    ("x = hash('a')", "calls `hash`"),
    ("a = [1]\nx = 1 if a is a else 2", "identities"),
    ("a = [float('nan')]\nx = a[0] in a", "NaN"),
    ("sum = print\nx = sum([1, 2])", "keeps its place in the output"),
    ("import numpy as np\nnp.mean = len\nx = np.sum([1])", "stays in order: `np.mean` = changes"),
    ("exec('q = 1')\nx = 1", "stays in order: line 2: exec"),
    ("x = undefined + 1", "unknown type"),
    ("import os\nx = os.getcwd()", "not among the calls known"),
    ("x = (yield_ := 3)", "also binds `yield_`"),
    ("with open('/dev/null') as f: x = 1", "`with` is not followed"),
    ("import numpy as np\nsetattr(np, 'mean', len)\nx = np.mean([1])", "line 3 uses setattr"),
    ("import pandas as pd\nxs = [[1]]\nx = pd.DataFrame({'a': xs})", "keeps the very objects"),
    ("q = []\ndef even(n):\n    r = odd(n)\n    q.append(r)\n    return 1\n"
     "def odd(n):\n    return 1 if n < 1 else even(n - 1)\nx = odd(3)", "in `even`, line 5"),
    ("q = [[1]]\ndef f(n):\n    if n > 2: return q\n    r = g(n)\n    r.append(2)\n    return r\n"
     "def g(n): return f(n + 1)\nx = len(g(0))", "in `f`, line 6"),
    ("a, *b = [[1], [2]]\nc = b\nb[0].append(3)", "changes a list"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "reason"), BARRIERS)
def test_what_is_not_proven_is_a_barrier_that_says_why(source: str, reason: str) -> None:
    kind, found = last(source)
    assert kind == "barrier"
    assert reason in found


def test_what_comes_after_code_of_unknown_effect_comes_after_it() -> None:
    plan = plan_of("import numpy as np\na = np.ones(9)\nopen('/dev/null')\nb = np.sort(a)")
    assert [edge.source for edge in plan.edges if edge.target == 3] == [0, 1, 2]


def test_a_name_that_unknown_code_may_rebind_is_not_known_afterwards() -> None:
    def make() -> dict[str, Any]:
        made: dict[str, Any] = {"np": np, "x": np.ones(3), "y": np.zeros(3)}
        exec(compile("def hidden():\n    global x\n    x = y", "<gone>", "exec"), made)
        return made

    plan = check("hidden()\ny[0] = 5\ns = np.sort(x)", make, orders=20)
    assert kinds(plan)[-1] == "barrier"


def test_names_that_share_an_object_in_the_notebook_are_changed_together() -> None:
    def make() -> dict[str, Any]:
        shared = [3, 1]
        return {"a": shared, "b": shared, "c": [shared, 1], "d": [1]}

    plan = check("x = sum(a)\nb.append(5)\ny = sum(a)\nz = sum(d)", make, orders=20)
    assert plan.nodes[1].changes == ("a", "b")
    assert (0, 3) in beside(plan)


def test_arrays_that_share_memory_in_the_notebook_are_changed_together() -> None:
    def make() -> dict[str, Any]:
        base = np.arange(6.0)
        return {"np": np, "a": base, "v": base[2:], "w": np.ones(2)}

    plan = check("x = np.sort(a)\nv[0] = 50\ny = np.sort(a)\nz = np.sort(w)", make, orders=20)
    assert {(0, 3), (2, 3)} <= beside(plan)
    assert any((edge.source, edge.target) == (1, 2) for edge in plan.edges)


class Trap:
    """Asking it anything is a side effect."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"the analysis asked for {name}")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("the analysis compared it")

    __hash__ = None  # type: ignore[assignment]


def test_the_users_own_objects_are_never_asked_anything() -> None:
    namespace = {"t": Trap(), "ts": [Trap()], "d": {"k": Trap()}, "u": (Trap(), 1)}
    plan = plan_of(
        "a = t.x\nb = ts[0]\nc = t == 1\nfor e in ts: e.f()\nd['k'] += 1\nlen(u)", namespace
    )
    assert set(kinds(plan)[:5]) == {"barrier"}


def test_a_replaced_library_function_is_not_taken_for_the_real_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(np, "mean", print)
    assert last("x = np.mean([1])", {"np": np})[0] == "barrier"


def test_a_users_own_module_of_a_known_name_is_not_taken_for_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "statistics.py").write_text("def mean(x): print(x)")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "statistics", raising=False)
    assert last("import statistics\nx = statistics.mean([1, 2])")[0] == "barrier"


def test_the_analysis_imports_no_library() -> None:
    code = (
        "import sys; from workbench.graphs.cell import parse_cell\n"
        "from workbench.graphs.plan import make_plan\n"
        "body = 'import numpy as np, pandas as pd\\nfrom sklearn.naive_bayes import GaussianNB\\n"
        "x = np.ones(3)\\ny = x.sum()\\nm = GaussianNB()'\n"
        "cell = parse_cell(body, transform=str, first_line=2, filename='c')\n"
        "plan = make_plan(cell, {}, split='auto', cores_available=2)\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'dask', 'IPython'} & set(sys.modules)\n"
        "print([one.kind.value for one in plan.nodes], sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['barrier', 'barrier', 'task', 'task', 'task'] []"


def test_functions_of_earlier_cells_are_followed_through_their_source() -> None:
    shell = InteractiveShell()
    try:
        shell.run_cell("k = 2\ndef f(x): return x * k\ndef g(x):\n    print(x)\n    return x")
        assert last("y = f(3)", shell.user_ns)[0] == "task"
        assert last("y = g(3)", shell.user_ns)[0] == "barrier"
        shell.user_ns["k"] = Trap()
        assert last("y = f(3)", shell.user_ns)[0] == "barrier"
    finally:
        InteractiveShell.clear_instance()
        shell.history_manager.end_session()


def test_functions_of_earlier_scheduled_cells_are_followed_too() -> None:
    namespace: dict[str, Any] = {}
    cell = cell_of("def f(x):\n    return x * 2")
    exec(cell.compile(cell.statements[0].node), namespace)
    assert last("y = f(3)", namespace)[0] == "task"


def test_a_function_whose_source_was_changed_is_not_followed() -> None:
    namespace: dict[str, Any] = {}
    exec(compile("def f(x):\n    print(x)\n    return x", "<edited>", "exec"), namespace)
    source = "def f(x):\n    pass\n    return x\n"
    linecache.cache["<edited>"] = (len(source), None, source.splitlines(keepends=True), "<edited>")
    assert last("y = f(3)", namespace)[0] == "barrier"


def test_the_place_of_a_reason_inside_a_function_is_told() -> None:
    reason = last("def f(v):\n    w = v\n    w.append(1)\n    return 1\nq = [1]\nx = f(q)")[1]
    assert reason == ".append() changes a list (in `f`, line 4)"


def test_a_very_deep_expression_stays_in_order_and_breaks_nothing() -> None:
    plan = plan_of("x = " + "+".join(["1"] * 900) + "\ny = 1")
    assert kinds(plan) in (["barrier", "barrier"], ["task", "task"])
