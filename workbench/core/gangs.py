"""Where a gang goes: close together, and where it leaves the largest gaps whole."""

from __future__ import annotations

from collections.abc import Sequence


def on_one_node(
    free: Sequence[list[int]], gpus: int, islands: Sequence[int] | None
) -> list[int] | None:
    """Takes GPUs from the node that has the fewest to spare.

    Where islands are known, from the fullest island with room; where none has room, from the
    node's emptiest islands, so that the gang is cut as seldom as can be.

    Args:
        free: GPUs by node, as ranks, each list sorted.
        gpus: How many.
        islands: The island of each rank; None where none is known.

    Returns:
        Their ranks; None where no node has that many.
    """
    fullest: list[int] | None = None
    for node in free:
        if len(node) >= gpus and (fullest is None or len(node) < len(fullest)):
            fullest = node
    if fullest is None or islands is None or gpus == 0:
        return None if fullest is None else fullest[:gpus]
    together = _in_one_island(free, gpus, islands)
    return together or _over_islands(_by_island(fullest, islands), gpus)


def _in_one_island(
    free: Sequence[list[int]], gpus: int, islands: Sequence[int]
) -> list[int] | None:
    """Takes GPUs from the fullest node with such an island, and there from the fullest island."""
    best: tuple[int, int, list[int]] | None = None
    for node in free:
        for island in _by_island(node, islands) if len(node) >= gpus else ():
            one = (len(node), len(island), island)
            if len(island) >= gpus and (best is None or one < best):
                best = one
    return None if best is None else best[2][:gpus]


def _over_islands(islands: list[list[int]], gpus: int) -> list[int]:
    left = sorted(islands, key=len, reverse=True)
    chosen: list[int] = []
    while len(left[0]) < gpus - len(chosen):
        chosen += left.pop(0)
    wanted = gpus - len(chosen)
    last = min((island for island in left if len(island) >= wanted), key=len)
    return chosen + last[:wanted]


def _by_island(node: list[int], islands: Sequence[int]) -> list[list[int]]:
    parts: dict[int, list[int]] = {}
    for rank in node:
        parts.setdefault(islands[rank], []).append(rank)
    return list(parts.values())


def over_nodes(
    free: Sequence[list[int]], gpus: int, sizes: Sequence[int], islands: Sequence[int] | None
) -> list[int] | None:
    """Takes whole nodes, the largest first, and the rest from one more.

    Args:
        free: GPUs by node, as ranks, each list sorted.
        gpus: How many; more than any node has.
        sizes: How many of them each node has, free or not.
        islands: The island of each rank; None where none is known.

    Returns:
        Their ranks; None where there are not enough.
    """
    chosen: list[int] = []
    left = list(free)
    for number in sorted(range(len(free)), key=lambda node: -sizes[node]):
        size = sizes[number]
        if size <= gpus - len(chosen) and len(free[number]) == size:
            chosen += free[number]
            left[number] = []
    rest = on_one_node(left, gpus - len(chosen), islands)
    return None if rest is None else chosen + rest
