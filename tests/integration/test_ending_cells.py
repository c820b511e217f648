"""How a scheduled cell ends in a real kernel, and what of it the notebook keeps."""

from __future__ import annotations

import os
import re
import signal

import psutil
import pytest

from tests.integration.lab import Lab, Notebook


@pytest.fixture(scope="module")
def notebook(shared_lab: Lab) -> Notebook:
    return shared_lab.notebook()


def kept(notebook: Notebook) -> str | None:
    return notebook.run("(p.x, 'q' in globals(), 'late' in globals())").result


START = "import types, time\np = types.SimpleNamespace(x=1)\nglobals().pop('q', None)"
CELL = "p.x = 2\nq = 3\nprint('begun')\ntime.sleep(600)\nlate = 4"


def test_scikit_learn_on_two_processes_ends_with_its_last_statement(notebook: Notebook) -> None:
    code = """%%gpu-schedule --cpus 2
import numpy
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
points = numpy.arange(40.0).reshape(20, 2)
scores = cross_val_score(SVC(), points, [0, 1] * 10, cv=2, n_jobs=2)
len(scores)
"""
    run = notebook.run(code, timeout_s=180)
    assert (run.error, run.result) == ("", "2")
    assert "waits for" not in run.stderr
    assert "left running" not in run.stderr


def test_a_time_limit_keeps_the_statements_that_were_finished(notebook: Notebook) -> None:
    notebook.run(START)
    run = notebook.run(f"%%gpu-schedule --time 2s\n{CELL}")
    assert run.error.startswith("JobFailed: the job ended: it ran longer than its limit")
    assert "what was finished before is kept: p, q" in run.error
    assert kept(notebook) == "(2, True, False)"


def test_a_cancel_keeps_them_too(notebook: Notebook, shared_lab: Lab) -> None:
    notebook.run(START)
    cell = notebook.start(f"%%gpu-schedule\n{CELL}")
    notebook.shown(cell, "begun")
    (job,) = re.findall(r"^\s*([0-9a-f]{8})", shared_lab.workbench("jobs").stdout, re.MULTILINE)[:1]
    assert shared_lab.workbench("cancel", job).returncode == 0
    run = notebook.collect(cell)
    assert "what was finished before is kept: p, q" in run.error
    assert kept(notebook) == "(2, True, False)"


def test_what_is_killed_says_that_nothing_came_back(notebook: Notebook) -> None:
    notebook.run(START)
    run = notebook.run("%%gpu-schedule\nimport os\np.x = 2\nq = 3\nos.kill(os.getpid(), 9)")
    assert "killed (SIGKILL)" in run.error
    assert "nothing of it came back: every name is as it was before" in run.error
    assert kept(notebook) == "(1, False, False)"


def test_the_loss_of_what_watches_over_a_job_is_told_in_words(
    notebook: Notebook, shared_lab: Lab
) -> None:
    path = shared_lab.work / "pid"
    cell = notebook.start(
        f"%%gpu-schedule\nimport os, time\nopen({str(path)!r}, 'w').write(str(os.getppid()))\n"
        "print('begun')\ntime.sleep(600)"
    )
    notebook.shown(cell, "begun")
    os.kill(int(path.read_text()), signal.SIGKILL)
    error = notebook.collect(cell).error
    assert "the process that watches over the job was killed" in error
    assert "shim" not in error


def test_submodules_that_the_kernel_has_imported_are_there(notebook: Notebook) -> None:
    notebook.run(
        "import urllib.request, xml.etree.ElementTree, email.mime.text\n"
        "def quoted(text): return urllib.request.quote(text)"
    )
    run = notebook.run(
        "%%gpu-schedule\n(urllib.request.quote('a b'), xml.etree.ElementTree.Element('e').tag,"
        " email.mime.text.MIMEText('x').get_payload(), quoted('c d'))"
    )
    assert (run.error, run.result) == ("", "('a%20b', 'e', 'x', 'c%20d')")


def test_a_thread_that_never_ends_holds_no_core_once_it_is_cancelled(one_lab: Lab) -> None:
    notebook = one_lab.notebook()
    path = one_lab.work / "pid"
    cell = notebook.start(
        f"%%gpu-schedule\nimport os, threading\nx = 1\n_ = open({str(path)!r}, 'w').write("
        "str(os.getpid()))\nthreading.Thread(target=threading.Event().wait).start()"
    )
    notebook.shown(cell, "which it now waits for")
    home = psutil.Process(int(path.read_text()))
    (job,) = re.findall(r"^\s*([0-9a-f]{8})", one_lab.workbench("jobs").stdout, re.MULTILINE)[:1]
    one_lab.workbench("cancel", job)
    assert "is kept" in notebook.collect(cell).error
    assert notebook.run("x").result == "1"
    assert not home.is_running()


def test_a_stop_iteration_of_a_task_is_what_the_cell_raises(notebook: Notebook) -> None:
    notebook.run("def first(items): return next(iter(items))")
    run = notebook.run("%%gpu-schedule --cpus 2\na = first([1])\nb = first([])\nc = first([3])")
    assert run.reply["ename"] == "StopIteration"
    assert "workbench/" not in run.traceback


def test_a_repr_that_fails_is_shown_once(notebook: Notebook) -> None:
    run = notebook.run(
        "%%gpu-schedule\nclass A:\n    def __repr__(self): raise ValueError('no text')\nA()"
    )
    shown = [one["content"] for one in run.messages if one["msg_type"] == "error"]
    (lines,) = [one["traceback"] for one in shown]
    everything = run.stdout + run.stderr + "".join(lines)
    assert (run.stdout, run.stderr) == ("", "")
    assert "Could not get source" not in everything
