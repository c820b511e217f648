from __future__ import annotations
import __future__

import ast
import inspect

import pytest

from tests.graphs.adversary import transform
from workbench.graphs.cell import COROUTINE, Cell, parse_cell, parse_source
from workbench.graphs.errors import CellRefused


def parse(body: str, *, future_flags: int = 0) -> Cell:
    return parse_cell(
        body,
        transform=transform,
        first_line=2,
        filename="<cell>",
        future_flags=future_flags,
    )


def sources(cell: Cell) -> list[str]:
    return [one.source for one in cell.statements]


def test_statements_have_the_users_own_lines() -> None:
    cell = parse("a = 1\n\nif a:\n    b = 2\nc = (1,\n     2)")
    assert [(one.lineno, one.end_lineno) for one in cell.statements] == [(2, 2), (4, 5), (6, 7)]
    assert sources(cell) == ["a = 1", "if a:\n    b = 2", "c = (1,\n     2)"]


def test_two_statements_of_one_line_are_two_with_their_own_text() -> None:
    assert sources(parse("é = 'ü'; b = é\nd = 1")) == ["é = 'ü'", "b = é", "d = 1"]


def test_a_decorator_belongs_to_its_function() -> None:
    cell = parse("x = 1\n@f\ndef g():\n    return 1")
    assert cell.statements[1].lineno == 3
    assert cell.statements[1].source.startswith("@f\ndef g")


@pytest.mark.parametrize("lead", ["\n\n", "   \n\n", "# a comment\n\n"])
def test_leading_lines_do_not_shift_the_numbers(lead: str) -> None:
    assert parse(lead + "x = 1").statements[0].lineno == 2 + lead.count("\n")


def test_a_continued_magic_does_not_shift_the_lines_after_it() -> None:
    cell = parse("!echo a \\\n  b\nx = 1\n%time y = \\\n  2\nz = 3")
    assert [one.lineno for one in cell.statements] == [2, 4, 5, 7]


def test_windows_line_ends_tabs_and_a_byte_order_mark_are_read() -> None:
    cell = parse("\ufeffif 1:\r\n\tx = 1\r\ny = 2\r\n")
    assert [one.lineno for one in cell.statements] == [2, 4]


def test_unicode_names_are_those_that_python_binds() -> None:
    cell = parse("é = 1\nﬁ = 2")
    namespace: dict[str, object] = {}
    for one in cell.statements:
        exec(cell.compile(one.node), namespace)
    assert cell.names.writes == {"é", "fi"} <= set(namespace)


@pytest.mark.parametrize(
    ("body", "line", "text"),
    [
        ("x = 1\nif x:\n\ty\n        z", 5, "z"),
        ("x = 1\ny = = 2", 3, "y = = 2"),
        ("\n\nx = (1,\n", 4, "x = (1,"),
        ("!echo a \\\n b\nf(x", 4, "f(x"),
        ("x = 1\nreturn 2", 3, None),
        ("def f():\n    break", 3, None),
        ("def f(a, a): pass", 2, None),
    ],
)
def test_a_syntax_error_names_the_users_own_line(body: str, line: int, text: str | None) -> None:
    with pytest.raises(SyntaxError) as found:
        parse(body)
    assert found.value.lineno == line
    assert found.value.filename == "<cell>"
    if text is not None:
        assert found.value.text is not None
        assert text in found.value.text
        assert found.value.offset


def test_top_level_await_is_seen_and_compiles_by_statement() -> None:
    cell = parse("import asyncio\nawait asyncio.sleep(0)\nx = 1")
    codes = [cell.compile(one.node) for one in cell.statements]
    assert [bool(code.co_flags & COROUTINE) for code in codes] == [False, True, False]
    assert COROUTINE == inspect.CO_COROUTINE


@pytest.mark.parametrize(
    ("body", "shown"),
    [("x = 1\nx", True), ("x = 1", False), ("x;", False), ("x  # ;", True), ("x; # why", False)],
)
def test_the_last_expression_is_shown_unless_a_semicolon_ends_it(body: str, shown: bool) -> None:  # noqa: FBT001
    assert parse(body).statements[-1].last_expr is shown


def test_help_lines_are_dropped() -> None:
    cell = parse("x = 1\nx?\n?x\nx??\nif x:\n    x?\ny = 2")
    assert sources(cell) == ["x = 1", "if x:\n    pass", "y = 2"]
    assert cell.statements[-1].lineno == 8


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("x = 1\nname = input('who')", 3, "asks for input"),
        ("import getpass\np = getpass.getpass()", 3, "asks for a password"),
        ("def f():\n    breakpoint()", 3, "debugger"),
        ("%pip install x", 2, "'%pip install x'"),
        ("!pip install x", 2, "'!pip install x'"),
        ("x = 1\n!python -m pip install -q x", 3, "environment"),
        ("out = !pip3 install x", 2, "environment"),
        ("%conda install x", 2, "environment"),
        ("%%time\nx = 1", 2, "%%time is a cell magic"),
        ("x = 1\n%%bash\nls", 3, "%%bash is a cell magic"),
    ],
)
def test_what_can_never_work_is_refused_with_line_and_next_step(
    body: str, line: int, words: str
) -> None:
    with pytest.raises(CellRefused) as found:
        parse(body)
    assert f"line {line}" in found.value.message
    assert words in found.value.message
    assert found.value.next_step


@pytest.mark.parametrize(
    "body",
    ["!pip list", "%pip list", "s = '''\n%%time\n'''", "def input(x): return x\ny = input(1)"],
)
def test_what_only_looks_like_it_is_not_refused(body: str) -> None:
    assert parse(body).statements


def test_the_home_parses_the_same_cell_from_the_source() -> None:
    cell = parse("x = !ls {d}\n%time y = 1\ny")
    again = parse_source(cell.source, raw=cell.raw, first_line=2, filename="<cell>")
    assert [(one.source, one.lineno) for one in again.statements] == [
        (one.source, one.lineno) for one in cell.statements
    ]
    assert ast.dump(again.tree, include_attributes=True) == ast.dump(
        cell.tree, include_attributes=True
    )


def test_future_imports_hold_for_every_statement() -> None:
    cell = parse("from __future__ import annotations\ndef f(x: undefined): return x")
    namespace: dict[str, object] = {}
    for one in cell.statements:
        exec(cell.compile(one.node), namespace)
    assert "f" in namespace


def test_future_imports_of_earlier_cells_hold_too() -> None:
    before = parse("from __future__ import annotations")
    cell = parse("def f(x: undefined): return x", future_flags=before.future_flags)
    exec(cell.compile(cell.statements[0].node), {})
    assert cell.future_flags == before.future_flags == __future__.annotations.compiler_flag


@pytest.mark.parametrize("body", ["", "# nothing\n", "\n\n"])
def test_an_empty_body_is_a_cell_without_statements(body: str) -> None:
    assert parse(body).statements == ()
