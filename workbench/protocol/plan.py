"""The plan of a cell: its tasks, maps and barriers, and why each must wait for another."""

from __future__ import annotations

import enum

from msgspec import Struct


class NodeKind(enum.Enum):
    """How a statement may run."""

    TASK = "task"
    """Proven: its value may be computed anywhere, at any time that its edges allow."""

    MAP = "map"
    """Proven for every item: the items may be computed beside one another."""

    BARRIER = "barrier"
    """Runs in the home, in program order, once."""


class Node(Struct, frozen=True, kw_only=True):
    """One statement of the cell.

    Attributes:
        id: Its place in program order, counted from 0; also the index of the statement.
        kind: How it may run.
        first_line: Number of its first line in the user's cell (line 1 is the magic's own).
        last_line: Number of its last line, inclusive.
        source: The statement's text, after IPython's transformation.
        reads: Names whose values it uses, also through the notebook's functions that it calls.
        writes: Names that it binds, deletes, or whose objects it changes.
        changes: Those of `writes` whose objects change in place: their new value is in the
            home's namespace once the node is committed, never in its result.
        inputs: For a read name that an earlier task or map bound: that node's id. A name that
            is missing here is read from the home's namespace once the edges allow.
        reason: Why it is what it is.
        width: Number of items of a map where it is known before anything runs, else None.
        inline: A proven task too small to send anywhere: run it in the home when its turn comes.
    """

    id: int
    kind: NodeKind
    first_line: int
    last_line: int
    source: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    changes: tuple[str, ...]
    inputs: dict[str, int]
    reason: str
    width: int | None
    inline: bool


class Edge(Struct, frozen=True, kw_only=True):
    """`target` may start only when `source` is done.

    A task or map that binds names is done when its value is known; a barrier, and a map that
    changes objects in place, when it is committed.
    """

    source: int
    target: int
    reason: str


class Plan(Struct, frozen=True, kw_only=True):
    """A cell's statements in program order, and the edges between them.

    Whatever the order of running, results, output and the first exception are committed in the
    order of `nodes`.

    Attributes:
        nodes: In program order; `nodes[i].id == i`.
        edges: Sorted by target, then source; `source < target`.
        width: The most tasks that can run beside one another, at least 1. A map of unknown
            length counts as the cores that were free.
        opaque: Why the cell may read or write any name, or None.
        left_behind: What the cell's text shows that it changes and that does not come back.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: int
    opaque: str | None
    left_behind: tuple[str, ...]
