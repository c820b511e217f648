"""The cells of data/split_cells.json; data/README.md says where they come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.graphs.adversary import beside, check

CELLS = json.loads((Path(__file__).parent / "data" / "split_cells.json").read_text())
PAIRS = {
    "l_two_models": {(3, 4)},
    "l_stats": {(2, 3), (2, 4), (3, 4)},
    "l_fft": {(2, 3)},
    "l_methods": {(2, 3), (2, 4), (3, 4)},
    "l_mixed_print": {(2, 4)},
    "l_userfunc": {(2, 3)},
    "independent_ok": {(0, 1), (0, 2), (1, 2)},
}


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # a cell leaves one open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", CELLS["tricky"])
def test_a_tricky_cell_gives_the_same_in_every_order(name: str, tmp_path: Path) -> None:
    plan = check("\n".join(CELLS["tricky"][name]), lambda: {"TMP": str(tmp_path)}, orders=40)
    assert beside(plan) >= PAIRS.get(name, set())


@pytest.mark.parametrize("name", CELLS["lab"])
def test_a_lab_cell_runs_beside_itself_and_gives_the_same(name: str) -> None:
    plan = check("\n".join(CELLS["lab"][name]), orders=40)
    assert beside(plan) >= PAIRS[name]
