from __future__ import annotations

import copy
import linecache
import pickle
import traceback
from typing import Any

import pytest

from workbench.graphs.run_failures import cut_to, give_tracebacks, tracebacks

FILENAME = "<ipython-input-7-failing>"
DEFINITIONS = """
def plain(a, b=1, *args, c, **kw):
    x = 1
    return deeper(
        lambda q: x / 0)

def deeper(h): return [h(i) for i in range(3)]

def rest(*values):
    return sum(int(v) for v in values)

def by_name(*, only):
    raise KeyError(only)

class K:
    def m(self):
        try:
            plain(1, c=2)
        except ZeroDivisionError as error:
            raise ValueError("from it") from error

    def meanwhile(self):
        try:
            rest("1", "no")
        except ValueError:
            by_name(only="that")

def several():
    errors = []
    for call in (K().m, K().meanwhile):
        try:
            call()
        except Exception as error:
            errors.append(error)
    raise ExceptionGroup("two", errors)

def recursive(n):
    return recursive(n - 1) if n else {}["deep"]
"""
CALLS = ("plain(1, c=2)", "K().m()", "K().meanwhile()", "several()", "recursive(20)", "1 / 0")


def raised_by(call: str) -> BaseException:
    source = f"{DEFINITIONS}\n{call}\n"
    linecache.cache[FILENAME] = (len(source), None, source.splitlines(keepends=True), FILENAME)
    try:
        exec(compile(source, FILENAME, "exec"), {"__name__": "__main__"})
    except Exception as error:  # noqa: BLE001  (each call raises another one)
        cut_to(error, FILENAME)
        return error
    raise AssertionError(call)


@pytest.mark.parametrize("call", CALLS)
def test_a_traceback_is_rendered_alike_on_the_other_side(call: str) -> None:
    error = raised_by(call)
    there = traceback.format_exception(error)
    carried: Any = pickle.loads(pickle.dumps(tracebacks(error)))
    strip(error)
    assert traceback.format_exception(error) != there
    give_tracebacks(error, carried)
    assert traceback.format_exception(error) == there


def strip(error: BaseException | None) -> None:
    if error is not None and error.__traceback__ is not None:
        error.__traceback__ = None
        for one in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
            strip(one)


def test_what_is_above_the_cell_is_cut_off() -> None:
    error = raised_by("1 / 0")
    assert [one.name for one in traceback.extract_tb(error.__traceback__)] == ["<module>"]


def test_an_exception_without_a_frame_of_the_cell_keeps_its_frames() -> None:
    error = raised_by("1 / 0")
    frames = copy.copy(traceback.extract_tb(error.__traceback__))
    cut_to(error, "<another file>")
    assert traceback.extract_tb(error.__traceback__) == frames


def test_an_exception_that_was_never_raised_has_no_traceback() -> None:
    error = ValueError("made")
    give_tracebacks(error, tracebacks(error))
    assert error.__traceback__ is None
