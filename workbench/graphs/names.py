"""Which names a cell reads, binds and deletes, found in its text alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from workbench.graphs.scopes import Comprehension, bindings, function_bindings, outer_parts
from workbench.graphs.screening import shell_call

_ANY_NAME: Final = frozenset({"exec", "eval", "globals", "locals", "vars", "dir", "__import__"})
_HARMLESS_MAGICS: Final = frozenset(
    {
        "matplotlib", "config", "load_ext", "reload_ext", "autoreload", "cd", "pwd", "env",
        "set_env", "precision", "ls", "pip", "conda",
    }
)  # fmt: skip
_CODE_MAGICS: Final = frozenset({"time", "timeit", "prun", "memit"})
_SHELL: Final = frozenset({"system", "getoutput", "system_raw"})
_MAGIC_OPTIONS: Final = re.compile(r"^(?:-\w+(?:\s+\d+)?\s+|--\s+)*")
_BRACES: Final = re.compile(r"\{([^{}]+)\}")
_DOLLAR: Final = re.compile(r"\$([^\W\d]\w*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementNames:
    """Names of one statement; all in the notebook's namespace.

    Attributes:
        reads: Read, also inside functions and comprehensions that it holds.
        writes: Bound, also through `global`.
        deletes: Deleted.
        surely: It is a simple statement: unless it raises, it binds all of `writes`.
        opaque: Why it may read or write any name, or None.
    """

    reads: frozenset[str]
    writes: frozenset[str]
    deletes: frozenset[str]
    surely: bool
    opaque: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellNames:
    """Names of a whole cell.

    Attributes:
        reads: Names that the cell may need from the namespace before it has bound them itself, and
            all that it may delete.
        writes: Names that it may bind.
        deletes: Names that it may delete.
        opaque: Why it may read or write any name, or None.
        statements: The same by statement, in program order.
    """

    reads: frozenset[str]
    writes: frozenset[str]
    deletes: frozenset[str]
    opaque: str | None
    statements: tuple[StatementNames, ...]


@dataclass(slots=True)
class _Scope:
    kind: str
    bound: set[str] = field(default_factory=set)
    global_: set[str] = field(default_factory=set)


def cell_names(tree: ast.Module) -> CellNames:
    """Find the names of a cell.

    Args:
        tree: The whole cell, after IPython's transformation.
    """
    statements = tuple(_statement_names(node) for node in tree.body)
    needed: set[str] = set()
    surely: set[str] = set()
    for one in statements:
        # A name to be deleted has to be there, and its absence has to be seen afterwards.
        needed |= (one.reads - surely) | one.deletes
        surely = (surely | (one.writes if one.surely else set())) - one.deletes
    return CellNames(
        reads=frozenset(needed),
        writes=frozenset().union(*(one.writes for one in statements)),
        deletes=frozenset().union(*(one.deletes for one in statements)),
        opaque=next((one.opaque for one in statements if one.opaque), None),
        statements=statements,
    )


def _statement_names(node: ast.stmt) -> StatementNames:
    collector = _Collector()
    try:
        collector.visit(node, [])
    except RecursionError:
        collector.opaque = f"line {node.lineno}: too deeply nested to be read beforehand"
    simple = (
        ast.Assign | ast.AnnAssign | ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
    )
    return StatementNames(
        reads=frozenset(collector.reads),
        writes=frozenset(collector.writes),
        deletes=frozenset(collector.deletes),
        surely=isinstance(node, simple)
        and not (isinstance(node, ast.AnnAssign) and not node.value),
        opaque=collector.opaque,
    )


class _Collector:
    """Walk one statement, keeping the stack of scopes inside the module's."""

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.deletes: set[str] = set()
        self.opaque: str | None = None

    def visit(self, node: ast.AST, scopes: list[_Scope]) -> None:  # noqa: C901  (a table)
        match node:
            case ast.Name():
                self._name(node, scopes)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._function(node, scopes)
            case ast.ClassDef():
                self._bind(node.name, scopes)
                self._all(outer_parts(node), scopes)
                found = bindings(node.body)
                self._all(node.body, [*scopes, _Scope("class", found.bound, found.global_)])
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._comprehension(node, scopes)
            case ast.Global():
                pass  # counted where the names are used
            case ast.ImportFrom() if any(one.name == "*" for one in node.names):
                self._opaque(node, f"import * from {node.module} may bind any name")
            case ast.Call():
                self._call(node, scopes)
            case _:
                if not isinstance(node, ast.expr):
                    for name in sorted(_own_bindings(node)):
                        self._bind(name, scopes)
                if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                    self._read(node.target.id, scopes)
                self._all(ast.iter_child_nodes(node), scopes)

    def _all(self, nodes: Iterable[ast.AST], scopes: list[_Scope]) -> None:
        for node in nodes:
            self.visit(node, scopes)

    def _opaque(self, node: ast.AST, reason: str) -> None:
        if self.opaque is None:
            self.opaque = f"line {getattr(node, 'lineno', '?')}: {reason}"

    def _name(self, node: ast.Name, scopes: list[_Scope]) -> None:
        if isinstance(node.ctx, ast.Load):
            if node.id in _ANY_NAME and self._read(node.id, scopes):
                self._opaque(node, f"{node.id} may read or bind any name")
            elif node.id == "get_ipython" and self._read(node.id, scopes):
                self._opaque(node, "get_ipython() may read or bind any name")
            else:
                self._read(node.id, scopes)
        elif isinstance(node.ctx, ast.Store):
            self._bind(node.id, scopes)
        elif not scopes or node.id in scopes[-1].global_:
            self.deletes.add(node.id)

    def _read(self, name: str, scopes: list[_Scope]) -> bool:
        """Count a read; False where the name belongs to a scope inside the statement."""
        for scope in reversed(scopes):
            if name in scope.global_:
                break
            # A class's names are not seen by the functions in it, and in its own body a name may
            # still be the module's until it is bound.
            if name in scope.bound and scope.kind != "class":
                return False
        self.reads.add(name)
        return True

    def _bind(self, name: str, scopes: list[_Scope]) -> None:
        for scope in reversed(scopes):
            if name in scope.global_:
                break
            if scope.kind != "comprehension" or name in scope.bound:
                return
        self.writes.add(name)

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scopes: list[_Scope]
    ) -> None:
        if not isinstance(node, ast.Lambda):
            self._bind(node.name, scopes)
        self._all(outer_parts(node), scopes)
        found = function_bindings(node)
        inner = [*scopes, _Scope("function", found.bound, found.global_)]
        self._all([node.body] if isinstance(node, ast.Lambda) else node.body, inner)

    def _comprehension(self, node: Comprehension, scopes: list[_Scope]) -> None:
        first = node.generators[0]
        self.visit(first.iter, scopes)
        bound: set[str] = set()
        for generator in node.generators:
            bound |= {one.id for one in ast.walk(generator.target) if isinstance(one, ast.Name)}
        inner = [*scopes, _Scope("comprehension", bound)]
        for generator in node.generators:
            self.visit(generator.target, inner)
            self._all([] if generator is first else [generator.iter], inner)
            self._all(generator.ifs, inner)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._all(parts, inner)

    def _call(self, node: ast.Call, scopes: list[_Scope]) -> None:
        call = shell_call(node)
        if call is None:
            looks = isinstance(node.func, ast.Name) and node.func.id in {"vars", "dir"}
            if looks and node.args:
                self._all([*node.args, *node.keywords], scopes)
            else:
                self._all(ast.iter_child_nodes(node), scopes)
            return
        method, arguments = call
        self._read("get_ipython", scopes)
        if method in _SHELL and arguments:
            self._shell_line(node, arguments[0], scopes)
        elif method == "run_line_magic" and arguments and arguments[0] in _CODE_MAGICS:
            self._code(node, _MAGIC_OPTIONS.sub("", arguments[-1]), scopes)
        elif method == "run_line_magic" and arguments and arguments[0] in _HARMLESS_MAGICS:
            self._shell_line(node, arguments[-1], scopes)
        else:
            magic = arguments[0] if arguments else method
            self._opaque(node, f"%{magic} may read or bind any name")

    def _shell_line(self, node: ast.AST, line: str, scopes: list[_Scope]) -> None:
        for name in _DOLLAR.findall(line):
            self._read(name, scopes)
        for code in _BRACES.findall(line):
            self._code(node, code, scopes)

    def _code(self, node: ast.AST, code: str, scopes: list[_Scope]) -> None:
        try:
            tree = ast.parse(code.strip())
        except SyntaxError:
            self._opaque(node, f"{code!r} is not Python that can be read beforehand")
            return
        self._all(tree.body, scopes)


def _own_bindings(node: ast.AST) -> set[str]:
    """Names that this very node binds other than by a Name, e.g. an import or a handler."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return bindings([node]).bound
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping):
        name = getattr(node, "rest", None) or getattr(node, "name", None)
        return {name} if name else set()
    return set()
