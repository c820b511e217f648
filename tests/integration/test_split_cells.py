"""Cells whose plan runs on workers, in a real kernel, through a real controller and agent."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.integration.lab import Lab, Notebook

SLOW = """
def slow(x):
    total = 0
    for i in range(300_000):
        total += i * x
    return total

def inverse(x):
    return slow(1) // x

class Model:
    def __init__(self, size):
        self.size = size
"""
SCHEDULE = "%%gpu-schedule --cpus 2\n"


@pytest.fixture(scope="module")
def notebook(shared_lab: Lab) -> Notebook:
    one = shared_lab.notebook()
    assert one.run(SLOW).ok
    return one


def last_job(one: Lab) -> Path:
    return max(one.jobs.iterdir(), key=lambda job: (job / "job.json").stat().st_mtime)


def places(one: Lab) -> list[dict[str, Any]]:
    """Where the last job's statements and items ran."""
    lines = (last_job(one) / "output.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["kind"] == "place"]


def of_the_job(one: Lab) -> list[psutil.Process]:
    """Live processes that carry the last job's lease."""
    job = last_job(one).name.encode()
    found = []
    for process in psutil.process_iter():
        try:
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        except OSError:
            continue
        if b"/" + job in environment and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def test_items_and_tasks_run_on_workers_and_come_back(shared_lab: Lab, notebook: Notebook) -> None:
    run = notebook.run(
        f"{SCHEDULE}print('before')\nys = [slow(x) for x in range(8)]\na = slow(3)\nb = slow(a % 7)\n"
        "print('after', len(ys))\n(ys[1], a, b)"
    )
    assert run.ok, run.traceback
    assert run.stdout == "before\nafter 8\n"
    here = notebook.run("(ys == [slow(x) for x in range(8)], (ys[1], slow(3), slow(slow(3) % 7)))")
    assert here.result is not None
    assert here.result.startswith("(True, ")
    assert here.result.endswith(f"{run.result})")
    where = {place["what"].split(",")[0]: set[str]() for place in places(shared_lab)}
    for place in places(shared_lab):
        where[place["what"].split(",")[0]].add(place["where"])
    assert where["line 2"] == {"home"}
    assert where["line 3"] == {"worker-0", "worker-1"}
    assert where["line 4"] <= {"worker-0", "worker-1"}
    assert not of_the_job(shared_lab)


def test_a_cell_of_barriers_starts_no_workers(shared_lab: Lab, notebook: Notebook) -> None:
    run = notebook.run(f"{SCHEDULE}print('one')\nprint('two')")
    assert run.stdout == "one\ntwo\n"
    assert not (last_job(shared_lab) / "dask").exists()


def test_an_exception_in_an_item_is_shown_at_the_users_line(notebook: Notebook) -> None:
    notebook.run("out = []\nsame = out")
    cell = "for x in (1, 2, 0, 4):\n    y = inverse(x)\n    out.append(y)\nnever = 1"
    run = notebook.run(SCHEDULE + cell)
    assert run.error.startswith("ZeroDivisionError: ")
    plain = re.sub("\x1b\\[[0-9;]*m", "", run.traceback)
    assert "----> 3     y = inverse(x)" in plain
    assert "in inverse(x)" in plain
    assert "workbench" not in plain.replace("/gpu-workbench/", "")
    state = notebook.run("(len(out), x, y == inverse(2), out is same, 'never' in globals())")
    assert state.result == "(2, 0, True, True, False)"


def test_a_killed_worker_does_not_change_the_result(shared_lab: Lab, notebook: Notebook) -> None:
    cell = notebook.start(f"{SCHEDULE}many = [slow(x) for x in range(64)]")
    deadline = time.monotonic() + 30
    running: list[Path] = []
    while not running:
        assert time.monotonic() < deadline
        running = [path for path in shared_lab.jobs.glob("*/dask/*.running") if path.read_text()]
    (job,) = {path.parents[1] for path in running}
    logs = {str(job / f"dask/{path.stem}.log"): path.stem for path in running}
    for process in psutil.process_iter():
        try:
            stdout = str(Path(f"/proc/{process.pid}/fd/1").readlink())
        except OSError:
            continue
        if stdout in logs:
            process.send_signal(signal.SIGKILL)
            break
    run = notebook.collect(cell)
    assert run.ok, run.traceback
    assert notebook.run("many == [slow(x) for x in range(64)]").result == "True"


def test_an_interrupt_keeps_the_statements_before(shared_lab: Lab, notebook: Notebook) -> None:
    notebook.run("a = b = c = 0")
    cell = notebook.start(
        f"{SCHEDULE}a = slow(1)\nb = slow(2)\nprint('kept')\nc = [slow(x) for x in range(5000)]"
    )
    notebook.shown(cell, "kept")
    notebook.interrupt()
    run = notebook.collect(cell)
    assert "KeyboardInterrupt" in run.error
    assert notebook.run("(a == slow(1), b == slow(2), c)").result == "(True, True, 0)"
    deadline = time.monotonic() + 20
    while of_the_job(shared_lab):
        assert time.monotonic() < deadline, of_the_job(shared_lab)
        time.sleep(0.05)


def test_classes_of_the_notebook_are_the_same_on_the_way_back(notebook: Notebook) -> None:
    notebook.run("models = [Model(3), Model(4)]\nfirst = models[0]")
    run = notebook.run(
        f"{SCHEDULE}sizes = [slow(m.size) for m in models]\nnew = [Model(slow(1)), Model(slow(2))]"
    )
    assert run.ok, run.traceback
    assert notebook.run("([type(m) is Model for m in new], models[0] is first)").result == (
        "([True, True], True)"
    )
