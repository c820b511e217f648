"""Scheduled cells in a real kernel, through a real controller and agent."""

from __future__ import annotations

import json
import re

import pytest

from tests.integration.lab import Lab, Notebook

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def notebook(shared_lab: Lab) -> Notebook:
    return shared_lab.notebook()


def test_names_values_and_output_come_back(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-schedule --split none\nprint('from the home')\nx = 6 * 7\nx + 1")
    assert run.ok, run.error
    assert run.stdout == "from the home\n"
    assert run.result == "43"
    assert run.displays[-1] == "gpu-schedule: ran on 2 cores (CPU)"
    assert notebook.run("(x, _)").result == "(42, 43)"


def test_the_kernel_never_runs_the_cell(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-schedule\nimport os\npid = os.getpid()")
    assert run.ok, run.error
    assert notebook.run("import os\npid != os.getpid()").result == "True"


def test_in_place_changes_reach_the_very_same_objects(notebook: Notebook) -> None:
    notebook.run("xs = [1]\nys = xs\nnested = {'xs': xs}")
    run = notebook.run("%%gpu-schedule\nxs.append(2)\nnested['new'] = xs")
    assert run.ok, run.error
    assert notebook.run("(ys, nested['new'] is xs, nested['xs'] is ys)").result == (
        "([1, 2], True, True)"
    )


def test_a_function_sees_the_names_as_the_cell_left_them(notebook: Notebook) -> None:
    notebook.run("k = 1\ndef f(x):\n    return x + k")
    run = notebook.run("%%gpu-schedule\nk = 2\ny = f(3)")
    assert run.ok, run.error
    assert notebook.run("(y, f(0), k)").result == "(5, 2, 2)"


def test_a_returned_instance_leaves_the_kernels_class_alone(notebook: Notebook) -> None:
    notebook.run("class C:\n    def who(self): return 'kernel'\nbefore = C")
    run = notebook.run("%%gpu-schedule\nc = C()")
    assert run.ok, run.error
    assert notebook.run("(C is before, type(c) is C, isinstance(c, C), c.who())").result == (
        "(True, True, True, 'kernel')"
    )


def test_a_result_that_cannot_be_bound_is_kept_until_it_can(
    notebook: Notebook, shared_lab: Lab
) -> None:
    barred = shared_lab.work / "barred"
    barred.touch()
    notebook.run(
        f"import os, workbench\nbarred, kernel = {str(barred)!r}, os.getpid()\n"
        "class Picky:\n    def __setstate__(self, state):\n"
        "        if os.getpid() == kernel and os.path.exists(barred): raise KeyError('not yet')\n"
        "        self.__dict__ = state"
    )
    notebook.run("held = []")
    cell = "%%gpu-schedule\npicky = Picky()\npicky.x = 1\nheld.append(picky)\nn = 42\nn"
    run = notebook.run(cell)
    assert run.error.startswith("BrokenTransfer: picky could not come back"), run.error
    call = re.search(r"workbench\.job\('\w+'\)\.result\(\)", run.error)
    assert call is not None, run.error
    assert notebook.run("'n' in globals()").result == "False"
    barred.unlink()
    assert notebook.run(call[0]).ok
    assert notebook.run("(n, held[0].x)").result == "(42, 1)"


def test_future_imports_hold_in_later_cells_scheduled_or_not(one_lab: Lab) -> None:
    notebook = one_lab.notebook()
    notebook.run("from __future__ import annotations")
    run = notebook.run("%%gpu-schedule\ndef f(x: nowhere): return x")
    assert run.ok, run.error
    other = one_lab.notebook()
    assert not other.run("%%gpu-schedule\ndef f(x: nowhere): return x").ok
    assert other.run("%%gpu-schedule\nfrom __future__ import annotations").ok
    assert other.run("def f(x: nowhere): return x").ok


def test_top_level_await_runs_in_the_home(notebook: Notebook) -> None:
    # ipython/ipython#14157
    run = notebook.run("%%gpu-schedule\nimport asyncio\nawait asyncio.sleep(0)\nawaited = 1")
    assert run.ok, run.error
    assert notebook.run("awaited").result == "1"


def test_shell_lines_magics_and_help_lines_run_or_are_dropped(notebook: Notebook) -> None:
    # kubeflow/kale#142
    code = (
        "%%gpu-schedule\n"
        "lines = !echo shell\n"
        "!echo $GPU_WORKBENCH_LEASE | tr -d '-' | wc -c\n"
        "lines?\n"
        "%time n = sum(range(10))\n"
        "get_ipython().system('echo system')"
    )
    run = notebook.run(code)
    assert run.ok, run.error
    assert "Wall time" in run.stdout
    assert "system" in run.stdout
    assert int(run.stdout.split()[0]) > 1, "the shell line did not have the lease's environment"
    assert notebook.run("(list(lines), n)").result == "(['shell'], 45)"


@pytest.mark.parametrize("line", ["!pip install x", "%pip install x", "!conda install -y x"])
def test_installs_are_refused_before_anything_is_queued(notebook: Notebook, line: str) -> None:
    run = notebook.run(f"%%gpu-schedule\ny = 1\n{line}")
    assert not run.ok
    assert "install" in run.error
    assert "line 3" in run.error


@pytest.mark.parametrize(
    ("body", "lineno"),
    [
        ("if x:\n\ty\n        z", 4),
        ("a = 1\nb = = 2", 3),
        ("for i in range(3)\n    pass", 2),
        ("a = 1\nreturn b", 3),
    ],
)
def test_a_syntax_error_points_at_the_users_own_line(
    notebook: Notebook, shared_lab: Lab, body: str, lineno: int
) -> None:
    # kubeflow/kale#142
    before = set(shared_lab.jobs.iterdir()) if shared_lab.jobs.exists() else set()
    run = notebook.run(f"%%gpu-schedule\n{body}")
    assert run.reply["ename"] in {"SyntaxError", "IndentationError", "TabError"}
    assert f"line {lineno}" in run.traceback
    assert "^" in run.traceback
    assert body.splitlines()[lineno - 2].strip() in ANSI.sub("", run.traceback)
    assert "frontends" not in run.traceback, "frames of Workbench are shown"
    after = set(shared_lab.jobs.iterdir()) if shared_lab.jobs.exists() else set()
    assert after == before, "something was staged"


def test_unicode_names_crlf_and_a_byte_order_mark_survive(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-schedule\né = 1\r\nf2 = é + 1\r\n")
    assert run.ok, run.error
    assert notebook.run("(é, f2)").result == "(1, 2)"
    run = notebook.run("%%gpu-schedule\n\ufeffbom = 1")
    assert run.ok, run.error
    assert notebook.run("bom").result == "1"


def test_a_timed_schedule_still_schedules(notebook: Notebook) -> None:
    run = notebook.run("%%time\n%%gpu-schedule\nunder_time = 3")
    assert run.ok, run.error
    assert notebook.run("under_time").result == "3"


@pytest.mark.parametrize("head", ["# a comment\n", "y = 1\n"])
def test_a_cell_magic_that_ipython_cannot_see_is_explained(notebook: Notebook, head: str) -> None:
    # ipython/ipython#15312
    run = notebook.run(f"{head}%%gpu-schedule\nx = 1")
    assert not run.ok
    assert "first line" in run.error + run.stderr


def test_an_empty_body_is_refused(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-schedule")
    assert not run.ok
    assert "body is empty" in run.error


def test_blank_lines_above_the_magic_are_fine_and_counted(notebook: Notebook) -> None:
    run = notebook.run("\n\n%%gpu-schedule\nok = 1\n1/0")
    assert run.reply["ename"] == "ZeroDivisionError"
    assert "line 5" in run.traceback
    assert notebook.run("ok").result == "1"


def test_the_first_exception_keeps_what_came_before_and_nothing_after(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-schedule\nkept = 1\nraise KeyError('mine')\nlater = 2")
    assert run.error == "KeyError: 'mine'"
    assert "line 3" in run.traceback
    assert notebook.run("(kept, 'later' in globals())").result == "(1, False)"


def test_a_cell_that_kills_its_own_process_is_named_and_the_kernel_lives(
    notebook: Notebook, shared_lab: Lab
) -> None:
    # nteract/papermill#125
    run = notebook.run("%%gpu-schedule\nprint('before')\nimport os\nos.kill(os.getpid(), 9)")
    assert "SIGKILL" in run.error
    assert "out of memory" not in run.error, "there was memory enough"
    assert run.stdout == "before\n"
    assert notebook.run("1 + 1").result == "2"
    jobs = json.loads(shared_lab.workbench("jobs", "--json").stdout)
    assert not any(one["state"] == "running" for one in jobs), "the lease was not freed"


def test_input_is_refused_with_its_line(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-schedule\nname = input('who? ')")
    assert not run.ok
    assert "input" in run.error
    assert "line 2" in run.error


def test_an_unpicklable_input_is_named(notebook: Notebook) -> None:
    notebook.run("import threading\ncfg = {'lock': threading.Lock()}")
    run = notebook.run("%%gpu-schedule\ncfg['lock']")
    assert run.reply["ename"] == "CannotCross"
    assert "cfg['lock']" in run.error


def test_output_that_comes_last_is_there_before_the_reply(notebook: Notebook) -> None:
    # computationalmodelling/nbval#231
    run = notebook.run("%%gpu-schedule\nimport time\ntime.sleep(0.3)\nprint('last')")
    assert run.stdout == "last\n"
    assert run.displays[-1].startswith("gpu-schedule: ran")


def test_the_status_line_is_above_all_output(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-schedule\nprint('up')\nimport time\ntime.sleep(0.5)\nprint('end')")
    shown = [
        one["content"].get("text") or one["content"]["data"]["text/plain"]
        for one in run.messages
        if one["msg_type"] in {"stream", "display_data"}
    ]
    assert shown[0].startswith("gpu-schedule: ")
    assert "up" in shown[1]


def test_rich_output_is_shown_once_and_clear_output_clears(notebook: Notebook) -> None:
    run = notebook.run(
        "%%gpu-schedule\nfrom IPython.display import HTML, display, clear_output\n"
        "display(HTML('<b>bold</b>'))\nclear_output(wait=True)\nprint('after')"
    )
    assert run.ok, run.error
    kinds = [one["msg_type"] for one in run.messages]
    assert kinds.count("clear_output") == 1
    html = [
        one["content"]["data"].get("text/html", "")
        for one in run.messages
        if one["msg_type"] == "display_data"
    ]
    assert html.count("<b>bold</b>") == 1


def test_the_line_form_gives_the_value(notebook: Notebook) -> None:
    run = notebook.run("value = %gpu-schedule --split none sum(range(5))")
    assert run.ok, run.error
    assert notebook.run("value").result == "10"


def test_a_large_input_is_measured_and_said(notebook: Notebook) -> None:
    # dask/dask#5503
    notebook.run("import numpy as np\nbig = np.zeros(300 * 2**20, dtype=np.uint8)\nbig[7] = 3")
    run = notebook.run("%%gpu-schedule\ntotal = int(big.sum())")
    assert run.ok, run.error
    assert "big is 300 MiB" in run.stderr
    assert notebook.run("total").result == "3"


def test_an_input_past_what_the_host_holds_is_refused_by_name(notebook: Notebook) -> None:
    # Zeros that were never touched take no memory; crossing them would.
    made = notebook.run(
        "import numpy as np, psutil\nmost = int(psutil.virtual_memory().total * 0.6)\n"
        "huge, vast = np.zeros(most, dtype=np.uint8), np.zeros(most, dtype=np.uint8)"
    )
    assert made.ok, made.error
    run = notebook.run("%%gpu-schedule\nhuge.sum() + vast.sum()")
    assert run.reply["ename"] == "CannotCross"
    assert "huge" in run.error
    assert "the limit is" in run.error
    notebook.run("del huge, vast, big")


@pytest.mark.parametrize(
    ("cell", "left"),
    [
        ("del gone", "False"),
        ("gone = 2\ndel gone", "False"),
        ("for gone in range(3): pass\ndel gone", "False"),
        ("def f():\n    global gone\n    del gone\nf()", "False"),
        ("del gone\ngone = 3", "True"),
        ("if False: del gone", "True"),
    ],
)
def test_a_deleted_name_is_deleted(notebook: Notebook, cell: str, left: str) -> None:
    notebook.run("gone = 1")
    run = notebook.run(f"%%gpu-schedule\n{cell}")
    assert run.ok, run.error
    assert notebook.run("'gone' in globals()").result == left


SETTINGS = {
    "decimal": (
        "import decimal\ndecimal.getcontext().prec = 5",
        "decimal.getcontext().prec = 7 if str(decimal.Decimal(1) / 3) == '0.33333' else 0",
        "decimal.getcontext().prec",
        "7",
    ),
    "numpy's errors": (
        "import numpy as np\nold = np.seterr(divide='raise')",
        "try:\n    np.ones(1) / 0\nexcept FloatingPointError:\n    old = np.seterr(over='raise')",
        "(np.geterr()['divide'], np.geterr()['over'], np.seterr(**old) and None)[:2]",
        "('raise', 'raise')",
    ),
    "torch's default dtype": (
        "import torch\ntorch.set_default_dtype(torch.float64)",
        "kind = str(torch.ones(1).dtype)\ntorch.set_default_dtype(torch.float32)",
        "(kind, torch.get_default_dtype())",
        "('torch.float64', torch.float32)",
    ),
    "recursion limit": (
        "import sys\nold_limit = sys.getrecursionlimit()\nsys.setrecursionlimit(2345)",
        "seen = sys.getrecursionlimit()\nsys.setrecursionlimit(old_limit)",
        "(seen, sys.getrecursionlimit() == old_limit)",
        "(2345, True)",
    ),
}


@pytest.mark.parametrize("what", SETTINGS)
def test_settings_of_the_process_travel_both_ways(notebook: Notebook, what: str) -> None:
    before, cell, asked, answer = SETTINGS[what]
    assert notebook.run(before).ok
    run = notebook.run(f"%%gpu-schedule\n{cell}")
    assert run.ok, run.error
    assert notebook.run(asked).result == answer


def test_what_the_notebook_logs_is_logged_in_the_cell(notebook: Notebook) -> None:
    made = notebook.run(
        "import logging\nlogging.basicConfig(level=logging.INFO, format='%(message)s!', force=True)"
    )
    assert made.ok, made.error
    run = notebook.run("%%gpu-schedule\nlogging.getLogger('mine').info('logged')")
    assert run.ok, run.error
    assert "logged!\n" in run.stderr


@pytest.mark.parametrize(
    "odd",
    [
        "class Odd(dict):\n    __getattr__ = dict.__getitem__\nodd = Odd(a=1)",
        "class Odd:\n    def __getattr__(self, name): raise RuntimeError(name)\nodd = Odd()",
    ],
)
def test_odd_objects_are_looked_at_without_running_their_code(notebook: Notebook, odd: str) -> None:
    assert notebook.run(odd).ok
    run = notebook.run("%%gpu-schedule\nkind = type(odd).__name__\neval('1')")
    assert run.ok, run.error
