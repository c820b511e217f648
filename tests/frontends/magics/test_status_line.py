"""The line above a cell's output: how often it is sent, and what with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from tests.frontends.server.scenes import job
from workbench.frontends.magics.status_line import PAUSE_S, StatusLine, waiting_text


class Clock:
    """Goes on when told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def sent() -> Iterator[Any]:
    """What is displayed."""
    InteractiveShell.instance()
    with capture_output() as captured:
        yield captured
    InteractiveShell.clear_instance()


def texts(sent: Any) -> list[str]:
    return [one.data["text/plain"].removeprefix("gpu-schedule: ") for one in sent.outputs]


def test_many_changes_in_a_moment_are_two_messages_and_the_last_one_is_shown(sent: Any) -> None:
    clock = Clock()
    line = StatusLine("", clock)
    for done in range(1500):
        line.show(f"{done} of 1500 done")
    assert texts(sent) == ["0 of 1500 done"]
    assert line.due_s() == PAUSE_S
    clock.now_s = PAUSE_S
    assert line.due_s() == 0
    line.catch_up()
    assert texts(sent) == ["0 of 1500 done", "1499 of 1500 done"]
    assert line.due_s() is None


def test_a_text_is_sent_once_however_often_it_is_shown(sent: Any) -> None:
    clock = Clock()
    line = StatusLine("", clock)
    for clock.now_s in range(5):
        line.show("running")
    assert texts(sent) == ["running"]


def test_the_end_is_shown_at_once(sent: Any) -> None:
    line = StatusLine("", Clock())
    line.show("running")
    line.end("ran")
    assert texts(sent) == ["running", "ran"]


def test_the_plan_is_sent_with_the_first_and_the_last_line_only(sent: Any) -> None:
    clock = Clock()
    line = StatusLine("the plan", clock)
    line.show("waiting")
    clock.now_s = 1.0
    line.show("running")
    line.end("ran")
    assert ["the plan" in one.data["text/html"] for one in sent.outputs] == [True, False, True]


def test_a_cell_that_waits_for_its_own_kernels_gpu_says_how_to_give_it_back() -> None:
    reason = "it waits for 1 GPU, 0 free: GPU-9b2f41c0 is held by job 0123abcd"
    view = job(1, place=1, reason=reason)
    assert "%gpu-release" in waiting_text(view, own_lease="0123abcd" + "0" * 24)
    assert "%gpu-release" not in waiting_text(view, own_lease="f" * 32)
    assert "%gpu-release" not in waiting_text(view)
