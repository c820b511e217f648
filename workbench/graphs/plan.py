"""Make the plan of a cell: its statements, and why each must wait for another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.graphs.analysis import Finding, analyse
from workbench.graphs.cell import Cell, Statement
from workbench.graphs.left_behind import left_behind
from workbench.protocol.plan import Edge, Node, NodeKind, Plan

__all__ = ["Plan", "make_plan"]

_IN_ORDER = "runs in program order"
_ASKED_FOR = "asked for: --split none"


def make_plan(
    cell: Cell,
    namespace: Mapping[str, Any],
    *,
    split: str,
    cores_available: int,
) -> Plan:
    """Make the plan of a cell.

    Args:
        cell: The parsed cell.
        namespace: The notebook's names as they are now; looked at, never called.
        split: `auto` to find what may run beside one another, `none` for one thing at a time.
        cores_available: Cores that are free: what a map of unknown length is assumed to fill.

    Returns:
        A plan of one node for each statement.
    """
    if split == "none":
        findings = [
            Finding(
                kind=NodeKind.BARRIER,
                reason=_ASKED_FOR,
                reads=tuple(sorted(one.reads)),
                writes=tuple(sorted(one.writes | one.deletes)),
            )
            for one in cell.names.statements
        ]
    else:
        findings = analyse(cell, namespace)
    nodes = tuple(
        _node(index, one, statement)
        for index, (one, statement) in enumerate(zip(findings, cell.statements, strict=True))
    )
    edges = tuple(_edges(nodes, findings))
    return Plan(
        nodes=nodes,
        edges=edges,
        width=_width(nodes, edges, max(1, cores_available)),
        opaque=cell.names.opaque,
        left_behind=left_behind(cell, namespace),
    )


def _node(index: int, finding: Finding, statement: Statement) -> Node:
    return Node(
        id=index,
        kind=finding.kind,
        first_line=statement.lineno,
        last_line=statement.end_lineno,
        source=statement.source,
        reads=finding.reads,
        writes=finding.writes,
        changes=finding.changes,
        inputs={name: at for name, (at, is_result) in finding.sources.items() if is_result},
        reason=finding.reason,
        width=finding.width,
        inline=finding.inline,
    )


def _edges(nodes: tuple[Node, ...], findings: list[Finding]) -> list[Edge]:
    edges: list[Edge] = []
    barrier: int | None = None
    fence: int | None = None
    since_barrier: list[int] = []
    for node, finding in zip(nodes, findings, strict=True):
        reasons: dict[int, str] = {}
        for name, (source, _) in finding.sources.items():
            verb = "changed" if name in nodes[source].changes else "written"
            line = nodes[source].first_line
            reasons.setdefault(source, f"reads `{name}`, {verb} at line {line}")
        if fence is not None and node.kind is not NodeKind.BARRIER:
            line = nodes[fence].first_line
            reasons.setdefault(fence, f"line {line} keeps its place among all others")
        if node.kind is NodeKind.BARRIER:
            if barrier is not None:
                reasons.setdefault(barrier, _IN_ORDER)
            for one in since_barrier:
                reasons.setdefault(
                    one, f"line {nodes[one].first_line} could fail, and nothing after it would run"
                )
            barrier, since_barrier = node.id, []
            fence = node.id if finding.fence is not None else fence
        else:
            since_barrier.append(node.id)
        edges += [
            Edge(source=source, target=node.id, reason=reasons[source])
            for source in sorted(reasons)
        ]
    return edges


def _width(nodes: tuple[Node, ...], edges: tuple[Edge, ...], cores: int) -> int:
    """Return how many tasks run at once if each starts as early as it may, all equally long."""
    step = [0] * len(nodes)
    for edge in edges:
        # What runs in the home takes no step of its own.
        takes = 0 if _in_home(nodes[edge.source]) else 1
        step[edge.target] = max(step[edge.target], step[edge.source] + takes)
    at_once: dict[int, int] = {}
    for node in nodes:
        if not _in_home(node):
            one = 1 if node.kind is NodeKind.TASK else cores if node.width is None else node.width
            at_once[step[node.id]] = at_once.get(step[node.id], 0) + one
    return max(at_once.values(), default=1) or 1


def _in_home(node: Node) -> bool:
    return node.kind is NodeKind.BARRIER or node.inline
