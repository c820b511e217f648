"""What a cell's owner is told: names that stay or are lost, errors in their own words."""

from __future__ import annotations

import pytest

from tests.integration.lab import Lab, Notebook

FILE = "import os\nfh = open(os.devnull)"


@pytest.fixture(scope="module")
def notebook(shared_lab: Lab) -> Notebook:
    return shared_lab.notebook()


def test_a_name_that_cannot_come_back_is_unbound_and_said(notebook: Notebook) -> None:
    notebook.run("kept, lost = 1, 'old'")
    run = notebook.run(f"%%gpu-schedule\n{FILE}\nlost = fh\nkept = 2")
    assert run.ok, run.error
    assert "lost could not come back and is unbound now: " in run.stderr
    assert notebook.run("(kept, 'lost' in globals(), 'fh' in globals())").result == (
        "(2, False, False)"
    )


def test_a_name_that_cannot_come_back_is_said_also_when_the_cell_raises(
    notebook: Notebook,
) -> None:
    notebook.run("lost = 'old'")
    run = notebook.run(f"%%gpu-schedule\n{FILE}\nlost = fh\n1/0")
    assert run.reply["ename"] == "ZeroDivisionError"
    assert "lost could not come back and is unbound now: " in run.stderr
    assert notebook.run("'lost' in globals()").result == "False"


def test_a_change_in_place_that_cannot_come_back_leaves_the_object(notebook: Notebook) -> None:
    notebook.run("xs = [1]")
    run = notebook.run(f"%%gpu-schedule\n{FILE}\nxs.append(fh)")
    assert run.ok, run.error
    assert "xs is as it was before the cell" in run.stderr
    assert notebook.run("xs").result == "[1]"


def test_a_last_value_that_cannot_come_back_does_not_leave_an_older_one(
    notebook: Notebook,
) -> None:
    notebook.run("'older'")
    run = notebook.run(f"%%gpu-schedule\n{FILE}\nfh")
    assert run.ok, run.error
    assert "last value could not come back" in run.stderr
    assert run.result is not None
    assert run.result.startswith("<_io.TextIOWrapper")
    assert "could not come back" in (notebook.run("repr(_)").result or "")


def test_a_detached_job_says_what_could_not_come_back(notebook: Notebook) -> None:
    notebook.run("lost = 'old'")
    notebook.run(f"%%gpu-schedule --detach\n{FILE}\nlost = fh")
    run = notebook.run("_.result(30)")
    assert "lost could not come back and is unbound now: " in run.stderr
    assert notebook.run("'lost' in globals()").result == "False"


def test_a_cell_that_may_read_any_name_is_sent_what_can_go(notebook: Notebook) -> None:
    notebook.run(f"{FILE}\nx = 1")
    run = notebook.run("%%gpu-schedule\ny = eval('x + 1')")
    assert run.ok, run.error
    assert "line 2: eval may read or bind any name" in run.stderr
    assert "fh" in run.stderr
    run = notebook.run("%%gpu-schedule\neval('fh')")
    assert run.reply["ename"] == "NameError"
    assert "fh was left out of the scheduled cell: " in run.traceback
    assert notebook.run("del fh").ok


def test_a_group_of_exceptions_is_shown_as_the_cells_own(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-schedule\nkept = 3\nraise ExceptionGroup('both', [KeyError('k')])")
    assert run.reply["ename"] == "ExceptionGroup"
    assert "both" in run.traceback
    assert "line 3" in run.traceback
    assert "frontends" not in run.traceback + run.stderr
    assert notebook.run("kept").result == "3"
    run = notebook.run("raise ExceptionGroup('here', [ValueError('v')])")
    assert "ValueError: v" in run.stderr, "the kernel's own groups are shown as ever"
    notebook.run(
        "%%gpu-schedule --detach\ntry:\n    raise ExceptionGroup('inner', [KeyError('k')])\n"
        "except* KeyError:\n    raise ValueError('outer')"
    )
    run = notebook.run("_.result(30)")
    assert "frontends" not in run.traceback + run.stderr
    assert "outer" in run.traceback


def test_objects_that_defend_themselves_do_not_fail_a_cell(notebook: Notebook) -> None:
    run = notebook.run(
        "class Lying:\n    __class__ = property(lambda self: 1 / 0)\n"
        "class Meta(type):\n    def __getattr__(cls, name): 1 / 0\n"
        "class Made(metaclass=Meta): pass\nlying, made = Lying(), Made()"
    )
    assert run.ok, run.error
    run = notebook.run("%%gpu-schedule\nfine = 1")
    assert run.ok, run.error
    notebook.run("del lying, made, Made, Lying, Meta")


def test_the_memory_of_a_gpu_asks_for_one(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-schedule --gpu-memory 999GiB\nx = 1")
    assert run.reply["ename"] == "NeverFits"


@pytest.mark.parametrize("option", ["--cpus 99999999999999999999999", "--memory 99999999999TiB"])
def test_a_huge_number_is_refused_in_a_sentence(notebook: Notebook, option: str) -> None:
    run = notebook.run(f"%%gpu-schedule {option}\nx = 1")
    assert run.reply["ename"] == "UserError"
    assert "more than any host has" in run.error
    assert len(run.reply["traceback"]) == 1


def test_progress_of_many_statements_is_few_messages(notebook: Notebook) -> None:
    body = "\n".join(f"a{index} = {index}" for index in range(300))
    run = notebook.run(f"%%gpu-schedule --split none\n{body}")
    assert run.ok, run.error
    assert len(run.displays) < 100
    assert run.displays[-1].startswith("gpu-schedule: ran")


def test_waiting_for_a_job_says_how_its_names_are_bound(notebook: Notebook) -> None:
    notebook.run("%%gpu-schedule --detach\nwaited_for = 4")
    assert notebook.run("waiting = _").ok
    run = notebook.run("get_ipython().run_line_magic('gpu-wait', waiting.id)")
    assert run.result == "'done'"
    assert ".result()" in run.stderr


def test_the_advice_is_asked_under_its_own_name(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-advise\nx = = 1")
    assert "gpu-advise" in run.traceback
    assert "gpu-plan" not in run.traceback
