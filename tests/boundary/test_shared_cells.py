"""The cells that a splitter gets wrong: every way to cut each in two gives what it gives whole."""

import json
from pathlib import Path

import pytest

from tests.boundary.two_sides import Notebook, check_as_in_order
from workbench.boundary import CannotCross

CELLS = json.loads((Path(__file__).parents[1] / "graphs/data/split_cells.json").read_text())
CUTS = [
    pytest.param(statements, cut, id=f"{name}-{cut}")
    for group in CELLS.values()
    for name, statements in group.items()
    for cut in range(len(statements) + 1)
]
STAYS = {"with_file": {2: "f", 3: ""}, "iterator": {1: "it", 2: "it"}}
"""Where an input cannot cross: cell → cut → the variable."""


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # One cell leaves a file open.
@pytest.mark.parametrize(("statements", "cut"), CUTS)
def test_a_cell_cut_in_two_gives_what_it_gives_whole(
    notebook: Notebook,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    statements: list[str],
    cut: int,
) -> None:
    name = request.node.callspec.id.rsplit("-", 1)[0]
    before = "\n".join([f"TMP = {str(tmp_path)!r}", *statements[:cut]])
    cell = "\n".join(statements[cut:])
    if stays := STAYS.get(name, {}).get(cut):
        notebook.start(before)
        with pytest.raises(CannotCross, match=rf"^{stays} "):
            notebook.cross(cell)
        return
    lost = "f" if name == "with_file" and cut < 2 else ""
    check_as_in_order(notebook, before, cell, lost=lost)
