"""What a scheduled cell may not do, found before anything is queued; and help lines, dropped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from workbench.graphs.errors import CellRefused

_ASKS: Final = {
    "input": "asks for input",
    "getpass": "asks for a password",
    "getpass.getpass": "asks for a password",
    "breakpoint": "starts the debugger",
    "pdb.set_trace": "starts the debugger",
}
_ASKS_NEXT: Final = "Read the value in an unscheduled cell above and use its name here"
_DEBUG_NEXT: Final = "Take it out, or run the cell without %%gpu-schedule to debug it"
_INSTALLERS: Final = frozenset({"pip", "conda", "mamba", "micromamba", "uv"})
_INSTALLS: Final = re.compile(
    r"(?:^|[\s;&|/])(?:pip[\d.]*|conda|mamba|micromamba|uv|apt|apt-get)\s+(?:\S+\s+)*?"
    r"(?:install|uninstall|update|upgrade|remove|sync|add)\b"
)
_HELP: Final = frozenset({"pinfo", "pinfo2", "psearch", "pycat"})
_SHELL: Final = frozenset({"system", "getoutput", "system_raw"})


def shell_call(node: ast.AST) -> tuple[str, list[str]] | None:
    """Recognise what IPython makes of a magic or shell line.

    Returns:
        The method of the shell (`run_line_magic`, `system`…) and its constant arguments; None
        for anything else.
    """
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    shell = node.func.value
    if not (isinstance(shell, ast.Call) and isinstance(shell.func, ast.Name)):
        return None
    if shell.func.id != "get_ipython" or node.keywords:
        return None
    arguments = [
        one.value for one in node.args if isinstance(one, ast.Constant) and type(one.value) is str
    ]
    return (node.func.attr, arguments) if len(arguments) == len(node.args) else None


def refuse_unsupported(tree: ast.Module, typed: str, first_line: int) -> None:
    """Refuse what can never work in a scheduled cell.

    Raises:
        CellRefused: Names the line, the rule and the next step.
    """
    for number, line in enumerate(typed.split("\n"), first_line):
        if line.startswith("%%") and _is_cell_magic(tree, line, number, first_line):
            magic = line.split(maxsplit=1)[0]
            raise CellRefused(
                f"line {number}: {magic} is a cell magic inside a scheduled cell",
                next_step=f"Use the line form (%{magic[2:]} …) or put {magic} in its own cell",
            )
    own = {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            _refuse_asking(node, own)
            _refuse_installing(node)


def _is_cell_magic(tree: ast.Module, line: str, number: int, first_line: int) -> bool:
    name = line[2:].partition(" ")[0].strip()
    for node in ast.walk(tree):
        call = shell_call(node)
        # IPython makes a cell magic of the first line, and of a later one a magic named "%name".
        if call is not None and call[1] and call[1][0] in {name, f"%{name}"}:
            at = getattr(node, "lineno", 0)
            if call[0] == "run_cell_magic" and at >= first_line:
                return True
            if call[0] == "run_line_magic" and at == number:
                return True
    return False


def _refuse_asking(node: ast.Call, own: set[str]) -> None:
    called = ast.unparse(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else ""
    what = _ASKS.get(called)
    if what is not None and called not in own:
        next_step = _DEBUG_NEXT if "debugger" in what else _ASKS_NEXT
        raise CellRefused(
            f"line {node.lineno}: {called}() {what}, and nobody answers a scheduled cell",
            next_step=next_step,
        )


def _refuse_installing(node: ast.Call) -> None:
    call = shell_call(node)
    if call is None or not call[1]:
        return
    method, arguments = call
    command = " ".join(arguments).strip()
    if method == "run_line_magic" and arguments[0] in _INSTALLERS:
        typed = f"%{command}"
    elif method in _SHELL:
        typed = f"!{command}"
    elif method == "run_line_magic" and arguments[0] in {"sx", "sc", "system"}:
        typed = command = arguments[-1]
    else:
        return
    if _INSTALLS.search(command):
        raise CellRefused(
            f"line {node.lineno}: {typed!r} would change the environment that other jobs and this "
            "kernel are using",
            next_step="Install in an unscheduled cell or a terminal, then restart the kernel",
        )


def drop_help_lines(tree: ast.Module, source: str, first_line: int) -> str:
    """Blank out lines such as `df?`: there is no one to read the help."""
    lines = source.split("\n")
    for node in _help_statements(tree):
        row = lines[node.lineno - first_line].encode()
        # `pass` keeps a block that held nothing else a block.
        row = row[: node.col_offset] + b"pass" + row[node.end_col_offset :]
        text = row.decode()
        lines[node.lineno - first_line] = "" if text.strip() == "pass" and text[0] == "p" else text
    return "\n".join(lines)


def _help_statements(tree: ast.Module) -> Iterator[ast.Expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            call = shell_call(node.value)
            if call is not None and call[0] == "run_line_magic" and call[1][0] in _HELP:
                yield node
