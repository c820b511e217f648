"""Turn the text under the magic line into statements that can be analysed and run one by one."""

from __future__ import annotations
import __future__

import ast
import difflib
import functools
import io
import operator
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final, Literal, cast

from workbench.graphs.names import CellNames, cell_names
from workbench.graphs.screening import drop_help_lines, refuse_unsupported
from workbench.graphs.sources import remember
from workbench.protocol.job_files import CellSpec

COROUTINE: Final = 0x80
"""`inspect.CO_COROUTINE`: evaluating such code gives something to await."""

FUTURES: Final[int] = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
"""The flags of all that `from __future__` can import; IPython keeps them in `compile.flags`."""

_BOM: Final = "\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One top-level statement of a cell.

    Attributes:
        source: Its text, with decorators.
        lineno: Its first line in the user's cell (the magic's own line is 1).
        end_lineno: Its last line, inclusive.
        node: The statement, with the user's line numbers.
        last_expr: Its value is the cell's value, to be displayed (a trailing `;` forbids it).
    """

    source: str
    lineno: int
    end_lineno: int
    node: ast.stmt
    last_expr: bool


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A parsed cell.

    Attributes:
        source: The body after IPython's transformation; line n of it is the user's line
            `first_line + n - 1`.
        raw: The body as the user typed it.
        tree: The whole body; line numbers are the user's.
        statements: In program order.
        filename: What tracebacks name.
        first_line: The user's line number of the body's first line.
        flags: For `compile`: top-level await and `from __future__` of this cell and before.
    """

    source: str
    raw: str
    tree: ast.Module
    statements: tuple[Statement, ...]
    filename: str
    first_line: int
    flags: int

    @property
    def future_flags(self) -> int:
        """Those of `flags` that hold in later cells too."""
        return self.flags & FUTURES

    @functools.cached_property
    def names(self) -> CellNames:
        """What the cell reads, binds and deletes."""
        return cell_names(self.tree)

    def compile(self, node: ast.AST, mode: Literal["exec", "eval"] = "exec") -> CodeType:
        """Compile a statement (`exec`) or an expression (`eval`) of this cell.

        Where the code's `co_flags & COROUTINE`, what `eval` of it gives has to be awaited.
        """
        tree: ast.AST
        if mode == "eval":
            tree = ast.Expression(cast("ast.expr", node))
        else:
            tree = ast.Module([cast("ast.stmt", node)], [])
        code = compile(cast("Any", tree), self.filename, mode, self.flags, dont_inherit=True)
        return cast("CodeType", code)


def parse_cell(
    raw_body: str,
    *,
    transform: Callable[[str], str],
    first_line: int,
    filename: str,
    future_flags: int = 0,
) -> Cell:
    """Parse what the user typed under the magic line.

    Args:
        raw_body: The text under the magic line, as it came.
        transform: IPython's transformer (`shell.transform_cell`).
        first_line: The body's first line, counted in the user's whole cell (2 under a magic).
        filename: What tracebacks name.
        future_flags: Of `from __future__` in earlier cells, which hold in later ones too.

    Returns:
        The cell, or never: code that does not compile is found here.

    Raises:
        SyntaxError: With the user's own line number, text and caret.
        CellRefused: It asks for input, installs packages, or holds another cell magic.
    """
    typed = raw_body.removeprefix(_BOM).replace("\r\n", "\n").replace("\r", "\n")
    try:
        transformed = _same_lines(typed, transform(typed))
    except SyntaxError as error:
        raise _moved(error, first_line - 1, filename) from None
    tree = _parse(transformed, first_line, filename, future_flags)
    refuse_unsupported(tree, typed, first_line)
    source = drop_help_lines(tree, transformed, first_line)
    return parse_source(
        source, raw=raw_body, first_line=first_line, filename=filename, future_flags=future_flags
    )


def parse_spec(spec: CellSpec) -> Cell:
    """Parse the cell that a job runs, as its home and its workers do."""
    return parse_source(
        spec.source,
        raw=spec.raw,
        first_line=spec.first_line,
        filename=spec.filename,
        future_flags=spec.future_flags,
    )


def parse_source(
    source: str, *, raw: str, first_line: int, filename: str, future_flags: int = 0
) -> Cell:
    """Parse a cell that was transformed before: `Cell.source`.

    Raises:
        SyntaxError: With the user's own line number, text and caret.
    """
    tree = _parse(source, first_line, filename, future_flags)
    remember(filename, source, first_line)
    flags = future_flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | _future_flags(tree)
    # Finds what only the compiler sees: `return` outside a function, two arguments of one name.
    compile(cast("Any", tree), filename, "exec", flags, dont_inherit=True)
    return Cell(
        source=source,
        raw=raw,
        tree=tree,
        statements=_statements(tree, source, first_line),
        filename=filename,
        first_line=first_line,
        flags=flags,
    )


def _parse(source: str, first_line: int, filename: str, flags: int) -> ast.Module:
    # Empty lines in front make the compiler itself count as the user does, also in its errors.
    padded = "\n" * (first_line - 1) + source
    only = flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST
    tree = compile(padded, filename, "exec", only, dont_inherit=True)
    return cast("ast.Module", tree)


def _moved(error: SyntaxError, lines: int, filename: str) -> SyntaxError:
    error.lineno = (error.lineno or 1) + lines
    error.end_lineno = (error.end_lineno or error.lineno - lines) + lines
    error.filename = filename
    return error


def _same_lines(typed: str, transformed: str) -> str:
    """Give back the lines that IPython took away, so that each statement keeps its number.

    IPython strips empty lines at the start and joins the continuation lines of magics.
    """
    before, after = typed.splitlines(), transformed.splitlines()
    leading = next((i for i, line in enumerate(before) if line.strip()), 0)
    before = before[leading:]
    if len(before) > len(after):
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        padded: list[str] = []
        for _, start, stop, new_start, new_stop in matcher.get_opcodes():
            lost = (stop - start) - (new_stop - new_start)
            padded += after[new_start:new_stop] + [""] * max(lost, 0)
        after = padded
    return "\n".join([""] * leading + after) + "\n"


def _future_flags(tree: ast.Module) -> int:
    flags = 0
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for alias in node.names:
                feature = getattr(__future__, alias.name, None)
                flags |= feature.compiler_flag if feature is not None else 0
    return flags


def _statements(tree: ast.Module, source: str, first_line: int) -> tuple[Statement, ...]:
    lines = source.split("\n")
    shown = bool(tree.body) and isinstance(tree.body[-1], ast.Expr) and not _ends_quietly(source)
    found = []
    for node in tree.body:
        decorators = getattr(node, "decorator_list", [])
        start = min([node.lineno, *(one.lineno for one in decorators)])
        end = node.end_lineno or node.lineno
        found.append(
            Statement(
                source=_text(lines, node, start - first_line, end - first_line),
                lineno=start,
                end_lineno=end,
                node=node,
                last_expr=shown and node is tree.body[-1],
            )
        )
    return tuple(found)


def _text(lines: list[str], node: ast.stmt, start: int, end: int) -> str:
    """Return a statement's text; column offsets count UTF-8 bytes."""
    chosen = [line.encode() for line in lines[start : end + 1]]
    chosen[-1] = chosen[-1][: node.end_col_offset]
    chosen[0] = chosen[0][node.col_offset if not getattr(node, "decorator_list", []) else 0 :]
    return b"\n".join(chosen).decode()


def _ends_quietly(source: str) -> bool:
    """Whether the last token is a semicolon, as IPython's display hook asks."""
    last = ""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            last = token.string
    return last == ";"
