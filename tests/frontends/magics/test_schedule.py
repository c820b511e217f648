"""A scheduled cell's words: how it ended, and what it must not hold."""

from __future__ import annotations

import json

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from tests.frontends.server import scenes
from workbench.frontends.magics.lease import held_text
from workbench.frontends.magics.schedule import _folded, last_words, refuse_own_magics
from workbench.graphs.cell import parse_cell
from workbench.graphs.errors import CellRefused
from workbench.graphs.plan import make_plan
from workbench.protocol.messages import LeaseEnding

CANCELLED = LeaseEnding(outcome="cancelled", detail="interrupted by its owner")


def test_a_job_that_never_ran_ran_nowhere() -> None:
    waiting = scenes.job(5)
    assert last_words(CANCELLED, waiting) == "cancelled: interrupted by its owner"
    assert last_words(CANCELLED, None) == "cancelled: interrupted by its owner"


def test_a_job_that_ran_says_on_what() -> None:
    ran = scenes.running(5, [], cores=2)
    assert last_words(LeaseEnding(outcome="done"), ran) == "ran on 2 cores (CPU)"
    assert last_words(CANCELLED, ran).startswith("cancelled on 2 cores (CPU): ")


@pytest.mark.parametrize("line", ["%gpu-jobs", "x = %gpu-wait 3f2a", "%gpu-anything", "%hist"])
def test_the_notebooks_own_magics_are_refused_in_a_cell(line: str) -> None:
    cell = parse_cell(
        f"y = 1\n{line}",
        transform=TransformerManager().transform_cell,
        first_line=2,
        filename="<cell>",
    )
    with pytest.raises(CellRefused, match=r"line 3: %.* works in the notebook, not inside"):
        refuse_own_magics(cell)


@pytest.mark.parametrize(
    ("source", "says"),
    [("xs = 1", ""), ("json.x = 1", "line 2: `json.x`"), ("xs = 1\nprint(xs)", "2 barriers")],
)
def test_the_status_line_folds_away_a_plan_that_says_something(source: str, says: str) -> None:
    cell = parse_cell(
        source, transform=TransformerManager().transform_cell, first_line=2, filename="<cell>"
    )
    folded = _folded(make_plan(cell, {"json": json}, split="none", cores_available=2))
    assert says in folded
    assert bool(folded) == bool(says)


def test_a_lease_with_a_limit_names_it() -> None:
    assert held_text("GPU-1", None) == "this kernel holds GPU-1 until it ends or %gpu-release"
    assert held_text("GPU-1", 3.0).endswith("; after 3 s it is stopped (--time)")
