from __future__ import annotations

import msgspec
import pytest

from tests.graphs.adversary import cell_of
from workbench.graphs.errors import PlanMismatch
from workbench.graphs.executable import executable
from workbench.graphs.plan import make_plan
from workbench.protocol.plan import NodeKind, Plan


def plan_of(source: str, *, split: str = "auto", cores: int = 4) -> Plan:
    return make_plan(cell_of(source), {}, split=split, cores_available=cores)


def edges(plan: Plan) -> dict[tuple[int, int], str]:
    return {(one.source, one.target): one.reason for one in plan.edges}


def test_without_splitting_everything_is_a_barrier_that_was_asked_for() -> None:
    plan = plan_of("a = sum([1])\nb = sum([2])\nprint(a, b)", split="none")
    assert [one.kind for one in plan.nodes] == [NodeKind.BARRIER] * 3
    assert {one.reason for one in plan.nodes} == {"asked for: --split none"}
    assert plan.width == 1
    assert set(edges(plan)) == {(0, 1), (1, 2)}


def test_edges_say_which_name_and_which_line() -> None:
    plan = plan_of("a = [1]\na.append(2)\nb = sum(a)\nc = b + 1")
    assert edges(plan) == {
        (0, 1): "reads `a`, written at line 2",
        (1, 2): "reads `a`, changed at line 3",
        (2, 3): "reads `b`, written at line 4",
    }


def test_a_barrier_waits_for_all_that_could_fail_before_it() -> None:
    plan = plan_of("a = sum([1])\nb = sum([2])\nprint(3)\nc = sum([4])\nprint(5)")
    assert set(edges(plan)) == {(0, 2), (1, 2), (2, 4), (3, 4)}
    assert edges(plan)[0, 2] == "line 2 could fail, and nothing after it would run"


def test_a_value_comes_from_the_last_statement_that_bound_it() -> None:
    plan = plan_of("a = sum([1])\nb = a + 1\na = sum([2])\nc = a + 1\na += 1\nd = a + 1")
    assert [one.inputs for one in plan.nodes] == [{}, {"a": 0}, {}, {"a": 2}, {"a": 2}, {}]


@pytest.mark.parametrize(
    ("source", "width"),
    [
        ("pass", 1),
        ("", 1),
        ("a = 1\nb = 2", 1),
        ("a = sum([1])\nb = sum([2])", 2),
        ("a = sum([1])\nb = sum([a])", 1),
        ("a = sum([1])\nprint(a)\nb = sum([2])", 2),
        ("def f(x): return x\nr = [f(i) for i in range(6)]\ns = sum([1])", 7),
        ("def f(x): return x\nr = [f(i) for i in range(0)]", 1),
        ("def f(x): return x\nn = sum([3])\nr = [f(i) for i in range(n)]", 4),
    ],
)
def test_the_width_is_how_many_tasks_run_at_once(source: str, width: int) -> None:
    assert plan_of(source).width == width


@pytest.mark.parametrize("split", ["auto", "none"])
def test_a_plan_names_what_does_not_come_back(split: str) -> None:
    plan = plan_of("import json\njson.x = 1", split=split)
    assert plan.left_behind == ("line 3: `json.x`",)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_a_plan_crosses_as_json_and_fits_its_cell_again() -> None:
    cell = cell_of("def f(x): return x\nr = [f(i) for i in range(6)]\na = sum(r)\nprint(a)")
    plan = make_plan(cell, {}, split="auto", cores_available=2)
    again = msgspec.json.decode(msgspec.json.encode(plan), type=Plan)
    assert again == plan
    nodes = executable(again, cell).nodes
    assert [(one.task is None, one.map is None) for one in nodes] == [
        (True, True), (True, False), (False, True), (True, True),
    ]  # fmt: skip


def test_a_plan_of_another_cell_is_refused() -> None:
    with pytest.raises(PlanMismatch):
        executable(plan_of("a = 1\nb = 2"), cell_of("a = 1\nb = 3"))


def test_the_wire_form_has_a_json_schema() -> None:
    schema = msgspec.json.schema(Plan)
    assert set(schema["$defs"]) == {"Plan", "Node", "NodeKind", "Edge"}


def test_lines_of_an_item_are_the_users_own() -> None:
    cell = cell_of(
        "def f(x): return x\nr = []\nfor i in range(2):\n    y = f(i)\n    r.append(1 / y)"
    )
    plan = make_plan(cell, {}, split="auto", cores_available=2)
    code = executable(plan, cell).nodes[2].map
    assert code is not None
    function = code.item_function({"f": lambda x: x})
    with pytest.raises(ZeroDivisionError) as found:
        function(0)
    assert found.traceback[-1].lineno + 1 == 6
    assert str(found.traceback[-1].path) == cell.filename
