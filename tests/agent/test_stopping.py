"""A job that is ended keeps what its finished statements did, as an interrupted one does."""

from __future__ import annotations

import os
import signal

import pytest

from tests.agent.lab import Lab

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("outcome", ["cancelled", "timed out"])
async def test_a_stop_keeps_the_statements_that_were_finished(lab: Lab, outcome: str) -> None:
    source = "x = 1\nxs.append(2)\nimport time\nprint('READY') or time.sleep(600)\ny = 2"
    job, lease, _ = await lab.begin(source, xs=[1])
    await lab.controller.stop_lease(lease, job, "a reason", outcome=outcome)
    ending = await lab.controller.over(lease)
    assert (ending.outcome, ending.detail) == (outcome, "a reason")
    result = lab.result(lab.ran(job))
    assert (result["x"], result["xs"]) == (1, [1, 2])
    assert "y" not in result


async def test_no_statement_begins_after_a_stop_that_the_cell_has_caught(lab: Lab) -> None:
    source = """
import time
try: print("READY") or time.sleep(600)
except KeyboardInterrupt: saved = True
late = True
"""
    job, lease, _ = await lab.begin(source)
    await lab.controller.stop_lease(lease, job)
    assert (await lab.controller.over(lease)).outcome == "cancelled"
    result = lab.result(lab.ran(job))
    assert result["saved"] is True
    assert "late" not in result


async def test_a_stop_reaches_an_await_a_shell_line_and_the_wait_for_a_thread(lab: Lab) -> None:
    thread = "import threading; threading.Thread(target=threading.Event().wait).start()"
    for wait in ("import asyncio; await asyncio.sleep(600)", "!sleep 600; true", thread):
        job, lease, _ = await lab.begin(f"x = 1\nprint('READY')\n{wait}")
        await lab.controller.stop_lease(lease, job)
        assert (await lab.controller.over(lease)).outcome == "cancelled"
        assert lab.result(lab.ran(job))["x"] == 1


async def test_a_term_from_elsewhere_keeps_them_too_and_is_named(lab: Lab) -> None:
    job, lease, shim = await lab.begin("x = 1\nprint('READY')\nimport time; time.sleep(600)")
    (home,) = lab.children(shim)
    os.kill(home, signal.SIGTERM)
    ending = await lab.controller.over(lease)
    assert (ending.outcome, ending.detail) == ("killed", "killed (SIGTERM)")
    assert lab.result(lab.ran(job))["x"] == 1


async def test_children_of_a_cell_die_of_a_term_as_ever(lab: Lab) -> None:
    source = """
import multiprocessing, time
codes = set()
for _ in range(20):
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start(); child.terminate(); child.join()
    codes.add(child.exitcode)
del child
"""
    ran = await lab.run(source)
    assert ran.ending.outcome == "done", ran.error()
    assert lab.result(ran)["codes"] == {-signal.SIGTERM}
    assert ran.text("stderr") == ""


async def test_what_does_not_stop_is_killed_and_leaves_no_result(lab: Lab) -> None:
    source = """
x = 1
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("READY") or time.sleep(600)
"""
    job, lease, _ = await lab.begin(source)
    await lab.controller.stop_lease(lease, job)
    assert (await lab.controller.over(lease)).outcome == "cancelled"
    assert not (lab.ran(job).directory / "result.pickle").exists()
