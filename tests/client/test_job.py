"""What a job's result makes of the notebook's names, and what is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from workbench.boundary import pack, stage, unpack
from workbench.client.job import bind

if TYPE_CHECKING:
    from pathlib import Path

OPEN = "TextIOWrapper is an open file. Close it and open it in the cell that uses it"
LOST = f"is as it was before the cell, for its change cannot come back: {OPEN}"


@pytest.mark.parametrize(
    ("cell", "left", "told"),
    [
        ("xs.append(f)", {"xs": [1], "y": 0}, [f"xs {LOST}"]),
        ("y = f", {"xs": [1]}, [f"y could not come back and is unbound now: {OPEN}"]),
        ("z = f", {"xs": [1], "y": 0}, [f"z could not come back: {OPEN}"]),
        ("xs.append(f)\nxs = 5", {"xs": 5, "y": 0}, [f"what xs was {LOST}"]),
        ("xs.append(f)\ndel xs", {"y": 0}, [f"what xs was {LOST}"]),
        (
            "xs.append(f)\nxs = f",
            {"y": 0},
            [f"xs could not come back and is unbound now: {OPEN}", f"what xs was {LOST}"],
        ),
    ],
)
def test_a_lost_change_and_a_lost_name_are_told_apart(
    tmp_path: Path, cell: str, left: dict[str, Any], told: list[str]
) -> None:
    kernel: dict[str, Any] = {"xs": [1], "y": 0}
    home: dict[str, Any] = {}
    crossing = pack(kernel, ["xs", "y"])
    crossing.write(tmp_path)
    arrival = unpack(tmp_path, home)
    with (tmp_path / "out").open("w") as file:
        exec(cell, {"f": file}, home)
        arrival.pack_back(tmp_path, names=[name for name in "xyz" if name in home], deleted=[])
    assert bind(stage(crossing, tmp_path), kernel) == told
    assert kernel == left
