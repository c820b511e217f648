"""What a cell that may read any name is sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workbench.boundary import CannotCross, CellError
from workbench.frontends.magics.left_out import explained, notes, pack_what_can_go

LIMIT_BYTES = 2**30


@pytest.fixture
def namespace(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A notebook with an open file, and a function that reads it."""
    with (tmp_path / "log").open("w") as file:
        names: dict[str, Any] = {"__name__": "__main__", "x": 1, "fh": file, "ys": [2]}
        exec("def log(line): fh.write(line)", names)
        yield names


def test_what_cannot_cross_is_left_out_with_its_reason(namespace: dict[str, Any]) -> None:
    sent = pack_what_can_go(namespace, ["x"], ["fh", "x", "ys"], limit_bytes=LIMIT_BYTES)
    assert sent.crossing.names == ["x", "ys"]
    assert "is an open file" in sent.left_out["fh"]


def test_a_function_that_reads_such_a_name_is_left_out_too(namespace: dict[str, Any]) -> None:
    sent = pack_what_can_go(namespace, ["x"], ["fh", "log", "ys"], limit_bytes=LIMIT_BYTES)
    assert sent.crossing.names == ["x", "ys"]
    assert set(sent.left_out) == {"fh", "log"}


@pytest.mark.parametrize("named", ["fh", "log"])
def test_what_stands_in_the_cell_itself_has_to_cross(namespace: dict[str, Any], named: str) -> None:
    with pytest.raises(CannotCross, match="fh"):
        pack_what_can_go(namespace, [named], ["fh", "log", "ys"], limit_bytes=LIMIT_BYTES)


def test_the_note_says_why_the_names_matter() -> None:
    assert notes({}, "line 2: eval may read or bind any name") == []
    reason = "fh is an open file"
    (note,) = notes({"fh": reason, "log": reason}, "line 2: eval may read or bind any name")
    assert note.startswith("line 2: eval may read or bind any name, so")
    assert note.endswith("Left out: fh is an open file; log: fh is an open file")


def test_a_missing_name_is_explained_and_any_other_error_left_alone() -> None:
    left_out = {"fh": "fh is an open file"}
    missing = CellError(exception=NameError("name 'fh' is not defined"), traceback_lines=["there"])
    told = explained(missing, left_out)
    assert told.traceback_lines[0] == "there"
    assert "fh is an open file" in told.traceback_lines[-1]
    for other in (NameError("name 'z' is not defined"), ValueError("name 'fh' is not defined")):
        error = CellError(exception=other)
        assert explained(error, left_out) is error
