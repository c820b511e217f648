"""The waiting jobs of one class as a heap of queues, for one pass over them in order."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

from workbench.core import fairness
from workbench.core.quotas import Account
from workbench.core.standings import Shapes, Turn

Line = tuple[int, Turn, int, list[Turn], Account]
"""The jobs of an account in a queue: its owner\'s share, the head, its position among them, all of
them, and the account."""


class Queue(NamedTuple):
    """The jobs of equal shapes and one tier; the head of the best account stands for all of them.

    Attributes:
        rank: Of that account's jobs, see `fairness.rank`.
        turn: Of the head.
        share: Of that account's owner.
        score: The policy's, of all of them.
        position: Of the head in `turns`.
        turns: That account's.
        account: That account.
        shapes: What would do for all of them.
        others: What the other accounts have, as a heap.
    """

    rank: float
    turn: Turn
    share: int
    score: float
    position: int
    turns: list[Turn]
    account: Account
    shapes: Shapes
    others: list[Line]

    def after(self) -> Queue | None:
        """Returns the queue without its head; None where that was all."""
        position = self.position + 1
        if position < len(self.turns):
            turn = self.turns[position]
            heappush(self.others, (self.share, turn, position, self.turns, self.account))
        return self.without_account()

    def without_account(self) -> Queue | None:
        """Returns the queue without all of the head's account; None where that was all."""
        if not self.others:
            return None
        return queue(self.score, self.shapes, self.others)


def queue(score: float, shapes: Shapes, lines: list[Line]) -> Queue:
    """Makes a queue.

    Args:
        score: The policy's, of all of its jobs.
        shapes: What would do for all of them.
        lines: Of at least one account; the queue owns it from now on.

    Returns:
        The queue, whose head is the job that comes first.
    """
    heapify(lines)
    share, turn, position, turns, account = heappop(lines)
    rank = fairness.rank(score, share)
    return Queue(rank, turn, share, score, position, turns, account, shapes, lines)


def replace_first(heads: list[Queue], following: Queue | None) -> None:
    """Puts what is left of the first queue of a heap in its place.

    Args:
        heads: The heap.
        following: What is left; None for nothing.
    """
    if following is None:
        heappop(heads)
    else:
        heapreplace(heads, following)
