"""Waiting jobs of one kind, as one round of decisions walks through them."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from workbench.core.model import Shape
from workbench.core.standings import Turn


class Queue(NamedTuple):
    """The jobs of one shape and tier; the head of the best owner stands for all of them.

    Attributes:
        share: Of that owner.
        score: The policy's, of all of them.
        turn: Of the head.
        position: Of the head in `turns`.
        turns: That owner's.
        shape: What all of them ask for.
        others: What the other owners have, as a heap of share, turn, position and turns.
    """

    share: int
    score: float
    turn: Turn
    position: int
    turns: list[Turn]
    shape: Shape
    others: list[tuple[int, Turn, int, list[Turn]]]

    def after(self) -> Queue | None:
        """Returns the queue without its head; None where that was all."""
        others, position = self.others, self.position + 1
        if position < len(self.turns):
            heappush(others, (self.share, self.turns[position], position, self.turns))
        if not others:
            return None
        share, turn, position, turns = heappop(others)
        return self._replace(share=share, turn=turn, position=position, turns=turns)
