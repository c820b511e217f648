from __future__ import annotations

from tests.graphs.adversary import cell_of
from workbench.graphs.plan import make_plan
from workbench.graphs.show import plan_html, plan_text
from workbench.protocol.plan import Plan


def plan_of(source: str) -> Plan:
    return make_plan(cell_of(source), {}, split="auto", cores_available=4)


def test_a_plan_as_text_names_line_kind_code_and_reason() -> None:
    assert (
        plan_text(plan_of("import math\na = sum([1])\nprint(a)\nb = sum([2, a])"))
        == """\
plan: 2 tasks, 2 barriers
  2  barrier    import math      imports
  3  task       a = sum([1])     proven: changes nothing, gives an integer of its own
  4  barrier    print(a)         print keeps its place in the output
  5  task       b = sum([2, a])  proven: changes nothing, gives an integer of its own
                └ after line 3: reads `a`, written at line 3"""
    )


def test_what_does_not_come_back_stands_below_the_statements() -> None:
    plan = plan_of("import json\njson.a = '<b>'\nsetattr(json, '<b>', 1)")
    said = "changed in the cell's own process only, and not carried back:"
    assert plan_text(plan).splitlines()[-3:] == [
        said,
        "  line 3: `json.a`",
        "  line 4: `json.<b>`",
    ]
    assert said in plan_html(plan)
    assert "<li>line 3: `json.a`</li><li>line 4: `json.&lt;b&gt;`</li>" in plan_html(plan)


def test_an_empty_plan_says_so() -> None:
    assert plan_text(plan_of("# nothing")) == "plan: nothing to run"
    assert plan_html(plan_of("")) == "<p>plan: nothing to run</p>"


def test_an_opaque_cell_says_so_in_the_first_line() -> None:
    assert "exec may read or bind any name" in plan_text(plan_of("exec('x')")).splitlines()[0]


def test_html_escapes_what_comes_from_the_cell() -> None:
    markup = plan_html(plan_of("x = '<script>alert(1)</script>' + str(b'&')"))
    assert "<script>" not in markup
    assert "&lt;script&gt;" in markup


def test_html_brings_no_colours_of_its_own() -> None:
    markup = plan_html(plan_of("a = sum([1])\nb = a"))
    assert "color:inherit" in markup
    assert "#" not in markup
