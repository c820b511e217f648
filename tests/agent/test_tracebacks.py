"""A traceback shows the user's own lines, and nothing of how they were run."""

from __future__ import annotations

import pytest

from tests.agent.lab import Lab

pytestmark = pytest.mark.asyncio(loop_scope="module")

OURS = ("workbench/", "asyncio/")


def shown(lab: Lab, error: str) -> str:
    """A traceback without colours; it must show none of our frames."""
    text = lab.plain(error)
    for place in OURS:
        assert place not in text
    return text


@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("raise StopIteration(3)", "StopIteration: 3"),
        ("next(iter([]))", "StopIteration"),
        ("raise StopAsyncIteration(3)", "StopAsyncIteration: 3"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("import asyncio; raise asyncio.CancelledError('why')", "CancelledError: why"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise ValueError from KeyError('first')", "ValueError"),
        ("raise ExceptionGroup('two', [ValueError(1), KeyError(2)])", "ExceptionGroup: two (2"),
        ("import asyncio; await asyncio.sleep(0); 1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
async def test_whatever_is_raised_shows_the_cells_line_alone(
    lab: Lab, source: str, detail: str
) -> None:
    ran = await lab.run(f"x = 1\n{source}\ny = 2")
    assert ran.ending.outcome == "failed"
    assert ran.ending.detail.startswith(detail)
    text = shown(lab, ran.error())
    assert detail.partition(":")[0] in text
    assert "line 3" in text
    assert lab.result(ran)["x"] == 1


async def test_a_last_value_that_cannot_be_rendered_is_left_to_the_kernel(lab: Lab) -> None:
    cell = "class A:\n    def __repr__(self): raise ValueError('no text')\n"
    ran = await lab.run(cell + "A()")
    assert ran.ending.outcome == "done", ran.error()
    assert ran.text() + ran.text("stderr") == ""
    ran = await lab.run(cell + "display(A())")
    assert shown(lab, ran.text() + ran.text("stderr")).count("ValueError: no text") == 1
