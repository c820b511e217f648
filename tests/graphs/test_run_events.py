from __future__ import annotations

import sys
import warnings
from typing import Any

import pytest

from workbench.graphs.run_events import Event, Printed, Warned, recorded, replay

CELL = "<ipython-input-3-cell>"
WARN = compile("import warnings\nwarnings.warn('careful')\n", CELL, "exec")


def test_output_and_warnings_are_recorded_in_order_and_not_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    events: list[Event] = []
    with recorded(events):
        warnings.simplefilter("always")
        print("one")
        exec(WARN, {"__name__": "__main__"})
        print("two", file=sys.stderr)
    shown = [one.text if isinstance(one, Printed) else str(one.message) for one in events]
    assert "".join(shown) == "one\ncarefultwo\n"
    assert {one.stream for one in events if isinstance(one, Printed)} == {"stdout", "stderr"}
    assert capsys.readouterr() == ("", "")


def test_the_replay_prints_and_warns_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    events: list[Event] = [
        Printed(stream="stdout", text="out\n"),
        Warned(message=UserWarning("careful"), category=UserWarning, filename=CELL, lineno=2),
        Printed(stream="stderr", text="err\n"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *_: print(message, file=sys.stderr)
        replay(events, {}, CELL)
    assert capsys.readouterr() == ("out\n", "careful\nerr\n")


def test_a_warning_that_was_shown_before_is_not_shown_again() -> None:
    event = Warned(message=UserWarning("once"), category=UserWarning, filename=CELL, lineno=2)
    namespace: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        replay([event, event], namespace, CELL)
        replay([event], namespace, CELL)
    assert len(shown) == 1


def test_a_warning_of_a_library_counts_as_that_librarys() -> None:
    event = Warned(
        message=UserWarning("of json"), category=UserWarning, filename=json_file(), lineno=1
    )
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", module="json")
        replay([event], {}, CELL)
    assert [str(one.message) for one in shown] == ["of json"]


def json_file() -> str:
    import json

    return json.__file__


def test_a_filter_that_raises_does_so_in_the_replay() -> None:
    event = Warned(message=UserWarning("bad"), category=UserWarning, filename=CELL, lineno=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="bad"):
            replay([event], {}, CELL)
