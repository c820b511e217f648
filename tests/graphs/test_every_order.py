"""The sceptic's test: no order that a plan allows can be told from program order."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings

from tests.graphs import programs
from tests.graphs.adversary import check

EXAMPLES = int(os.environ.get("WORKBENCH_SPLIT_EXAMPLES", "150"))


every_order = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="WORKBENCH_SPLIT_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)


@every_order
@given(programs.gentle_programs(), programs.starts())
def test_a_program_that_seldom_fails_gives_the_same_in_every_order(
    program: str, start: tuple[int, ...]
) -> None:
    check(program, lambda: programs.namespace(start), orders=6)


@every_order
@given(programs.programs(), programs.starts())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy says what random cells do
def test_a_random_program_gives_the_same_in_every_order(
    program: str, start: tuple[int, ...]
) -> None:
    check(program, lambda: programs.namespace(start), orders=6)
