from __future__ import annotations

import json
import sys
import types
from fractions import Fraction
from typing import Any

import pytest

from tests.graphs.adversary import cell_of
from workbench.graphs.left_behind import left_behind

IMPORTS = "import sys, os, json, types, warnings\nimport numpy as np\n"


def behind(source: str, namespace: dict[str, Any] | None = None) -> list[str]:
    return list(left_behind(cell_of(source), namespace or {}))


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("np.answer = 42", "`np.answer`"),
        ("np.random.mine = 42", "`np.random.mine`"),
        ("np.answer += 1", "`np.answer`"),
        ("del np.answer", "`np.answer`"),
        ("x, np.answer = 1, 2", "`np.answer`"),
        ("for np.answer in range(3): pass", "`np.answer`"),
        ("json.decoder.table['k']['l'] = 1", "`json.decoder.table`"),
        ("sys.modules['mine'] = json", "`sys.modules`"),
        ("sys.stdout = None", "`sys.stdout`"),
        ("setattr(np, 'answer', 42)", "`np.answer`"),
        ("delattr(json.decoder, 'answer')", "`json.decoder.answer`"),
        ("setattr(np, name, 42)", "attributes of `np`"),
        ("[setattr(np, 'answer', v) for v in range(3)]", "`np.answer`"),
        ("def f(): np.answer = 42\nf()", "`np.answer`"),
        ("@types.coroutine\ndef f(): np.answer = 42", "`np.answer`"),
        ("class C:\n    def __init__(self): np.answer = 42\nC()", "`np.answer`"),
        ("if x:\n    import torch.backends.cudnn\n    torch.backends.cudnn.benchmark = True",
         "`torch.backends.cudnn.benchmark`"),
        ("def f():\n    import torch as t\n    t.x = 1\nf()", "`t.x`"),
        ("from json import decoder\ndecoder.x = 1", "`decoder.x`"),
        ("from json import JSONDecoder\nJSONDecoder.x = 1", "`JSONDecoder.x`"),
        ("from not_loaded.yet import Model\nModel.x = 1", "`Model.x`"),
    ],
)  # fmt: skip
def test_what_is_set_on_a_module_or_an_importable_class_is_named(line: str, what: str) -> None:
    (found,) = behind(IMPORTS + line)
    assert found.partition(": ")[2] == what


@pytest.mark.parametrize(
    "line",
    [
        "import pandas as pd\npd.options.display.max_rows = 5",
        "os.environ['X'] = '1'",
        "del os.environ['X']",
        "sys.path = ['/x']",
        "sys.path[0] = '/x'",
        "warnings.filters[:] = []",
        "y = np.answer",
        "json.dumps([]).x = 1",
        "w = types.SimpleNamespace()\nw.x = 1",
        "w.rows[0].x = 1",
        "setattr(w, 'x', 1)",
        "class C:\n    x = 1\nC.x = 2\nsetattr(C, 'x', 3)",
        "def f(np): np.x = 1\nf(w)",
        "def f():\n    json = w\n    json.x = 1\nf()",
        "def f(): np.answer = 42",
        "[np for np in ws]",
        "[setattr(np, 'x', 1) for np in ws]",
        "from not_loaded.yet import settings\nsettings.x = 1",
        "from json import dumps\ndumps.x = 1",
    ],
)
def test_what_comes_back_or_never_runs_is_not_named(line: str) -> None:
    assert behind(IMPORTS + line) == []


def test_live_modules_and_classes_of_the_notebook_are_known() -> None:
    own = type("Own", (), {"__module__": "__main__"})
    namespace = {"json": json, "Fraction": Fraction, "Own": own, "x": [1]}
    source = "json.a = 1\nFraction.b = 2\nOwn.c = 3\nx.d = 4"
    assert behind(source, namespace) == ["line 2: `json.a`", "line 3: `Fraction.b`"]
    assert behind("json = x\njson.a = 1", namespace) == []


def test_live_objects_are_not_asked() -> None:
    class Lazy(types.ModuleType):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    class Proxy:
        @property
        def __class__(self) -> Any:  # type: ignore[override]
            raise AssertionError

    assert behind("lazy.x = 1\np.x = 1", {"lazy": Lazy("lazy"), "p": Proxy()}) == [
        "line 2: `lazy.x`"
    ]


def test_each_thing_is_named_once_with_its_first_line() -> None:
    source = "import json, sys\nsys.b = 1\njson.a = 1\njson.a = 2\nsys.b = 2"
    assert behind(source) == ["line 3: `sys.b`", "line 4: `json.a`"]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("plt.rcParams['a'] = 1\nplt.rcParams['b'] = 2", ["line 3: `plt.rcParams`"]),
        ("plt.rcParams.update({})\nplt.style.use('x')", ["line 3: matplotlib's settings"]),
        ("from matplotlib import rcParams\nrcParams['a'] = 1", ["line 4: `rcParams`"]),
        ("import matplotlib\nmatplotlib.rc('font', size=3)", ["line 4: matplotlib's settings"]),
        ("plt.figure()\nplt.plot([1])", ["line 3: pyplot's current figure"]),
        ("fig, ax = plt.subplots()", ["line 3: pyplot's current figure"]),
        ("plt.plot([1])\nplt.show()", []),
        ("plt.plot([1])\nplt.close()\nplt.hist([1])", ["line 5: pyplot's current figure"]),
        ("plt.cm.viridis(0)", []),
        ("def draw(): plt.plot([1])", []),
    ],
)
def test_matplotlibs_settings_and_open_figures_are_named(source: str, found: list[str]) -> None:
    assert behind("import matplotlib.pyplot as plt\n" + source) == found
    assert behind("from matplotlib import pyplot as plt\n" + source) == found


def test_live_settings_of_matplotlib_are_known_by_their_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = type("RcParams", (dict,), {"__module__": "matplotlib"})()
    monkeypatch.setitem(sys.modules, "matplotlib", types.ModuleType("matplotlib"))
    assert behind("rcParams['a'] = 1", {"rcParams": settings}) == ["line 2: `rcParams`"]
