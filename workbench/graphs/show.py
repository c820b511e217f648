"""A plan as plain text, and as a small static table that is fine in light and dark themes."""

from __future__ import annotations

import html
from typing import Final

from workbench.graphs.analysis import IMPORTS
from workbench.protocol.plan import Edge, Node, NodeKind, Plan

_LONGEST: Final = 44
_LEFT_BEHIND: Final = "changed in the cell's own process only, and not carried back"
_STYLE: Final = "border-collapse:collapse;font-size:90%;color:inherit;background:transparent"
_CELL: Final = (
    "text-align:left;vertical-align:top;padding:.15em .6em;color:inherit;background:transparent;"
    "border-bottom:1px solid rgba(128,128,128,.35)"
)


def plan_text(plan: Plan) -> str:
    """Return a plan as text: one line for each statement, then what it waits for."""
    if not plan.nodes:
        return "plan: nothing to run"
    lines = [_headline(plan)]
    width = max(len(_lines(node)) for node in plan.nodes)
    shown = max(min(_LONGEST, len(_code(node))) for node in plan.nodes)
    for node in plan.nodes:
        code = _code(node).ljust(shown)
        lines.append(f"  {_lines(node).rjust(width)}  {_kind(node):<10} {code}  {node.reason}")
        indent = " " * (width + 15)
        lines += [
            f"{indent}└ after {_place(plan, edge)}: {edge.reason}"
            for edge in _shown_edges(plan, node)
        ]
    if plan.left_behind:
        lines += [f"{_LEFT_BEHIND}:", *(f"  {one}" for one in plan.left_behind)]
    return "\n".join(lines)


def plan_html(plan: Plan) -> str:
    """Return a plan as an HTML fragment; everything that came from the cell is escaped."""
    if not plan.nodes:
        return "<p>plan: nothing to run</p>"
    head = "".join(f'<th style="{_CELL}">{one}</th>' for one in ("line", "", "code", "why"))
    rows = "".join(_row(plan, node) for node in plan.nodes)
    left = "".join(f"<li>{html.escape(one)}</li>" for one in plan.left_behind)
    behind = f"<p>{_LEFT_BEHIND}:</p><ul>{left}</ul>" if left else ""
    return (
        f"<div><p>{html.escape(_headline(plan))}</p>"
        f'<table style="{_STYLE}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        f"{behind}</div>"
    )


def _row(plan: Plan, node: Node) -> str:
    waits = "".join(
        f"<br><small>after {html.escape(_place(plan, edge))}: {html.escape(edge.reason)}</small>"
        for edge in _shown_edges(plan, node)
    )
    cells = (
        html.escape(_lines(node)),
        html.escape(_kind(node)),
        f"<code>{html.escape(_code(node))}</code>",
        html.escape(node.reason) + waits,
    )
    return "<tr>" + "".join(f'<td style="{_CELL}">{one}</td>' for one in cells) + "</tr>"


def _headline(plan: Plan) -> str:
    count = {kind: sum(one.kind is kind for one in plan.nodes) for kind in NodeKind}
    words = [
        f"{number} {kind.value}{'' if number == 1 else 's'}"
        for kind, number in count.items()
        if number
    ]
    beside = "" if plan.width == 1 else f"; up to {plan.width} at once"
    opaque = f"; {plan.opaque}" if plan.opaque else ""
    return f"plan: {', '.join(words)}{beside}{opaque}"


def _shown_edges(plan: Plan, node: Node) -> list[Edge]:
    """Return the edges that say something.

    Barriers follow one another anyway, and all that uses an import comes after it.
    """
    if node.kind is NodeKind.BARRIER:
        return []
    ends = [edge for edge in plan.edges if edge.target == node.id]
    return [edge for edge in ends if plan.nodes[edge.source].reason != IMPORTS]


def _place(plan: Plan, edge: Edge) -> str:
    return f"line {plan.nodes[edge.source].first_line}"


def _lines(node: Node) -> str:
    same = node.first_line == node.last_line
    return str(node.first_line) if same else f"{node.first_line}-{node.last_line}"


def _kind(node: Node) -> str:
    if node.kind is NodeKind.MAP:
        return "map" if node.width is None else f"map of {node.width}"
    return "task, here" if node.inline else node.kind.value


def _code(node: Node) -> str:
    first, *others = node.source.split("\n")
    text = first if not others else f"{first} …"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
