"""What finished and running jobs teach about how long jobs of a lab run.

Service is cut into a few levels. In each, for each size of gang, it is counted how many jobs ended
and how many seconds were spent there; that gives the chance a second of ending there. A job that
still runs counts too: it has passed the levels that it has passed. From the chances follows the
Gittins index of a level: the largest, over all later times, of the chance to be done by then over
the time that takes (Gittins 1979; for GPU clusters Gu et al., "Tiresias", NSDI 2019).

With few jobs seen, the counts of all sizes stand in for those of one, and a prior for those: that
each doubling of service sees half of the jobs end. The more a size has been seen, the less they
weigh (a gamma prior for a rate).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from math import exp, log, log2
from typing import Final

from workbench.core.model import Seconds

EDGES_S: Final = (112.5, 450.0, 1800.0, 7200.0, 28800.0)
"""Where levels 1 to 5 begin, in seconds of service: a factor of 4 apart, up to a working day."""
LEVELS: Final = len(EDGES_S) + 1
RESTART_S: Final = 60.0
"""So much of a lease after a preemption is no service: it brings back what was there before."""
LAST_SCORE: Final = 60.0
"""Of the last level: a job that has run for so long may run for ever. Larger than any other."""

_KEPT: Final = 2.0 ** (-1 / 30)
"""A size's older observations count less: half after 30 newer ones."""
_PRIOR_WEIGHT: Final = 8.0
_POOL_WEIGHT: Final = 2.0
"""In jobs: how strongly the prior and the counts of all sizes are believed."""
_SLACK_S: Final = 1e-6
_BEGINS: Final = (0.0, *EDGES_S)
_WIDTHS: Final = tuple(
    end - begin for begin, end in zip(_BEGINS, (*EDGES_S, 2 * EDGES_S[-1]), strict=True)
)
_PRIOR: Final = (
    log(2) / EDGES_S[0],
    *(log(1 + width / begin) / width for begin, width in zip(EDGES_S, _WIDTHS[1:], strict=True)),
)
"""Chances a second of ending in each level, if half of the jobs end in each doubling of service."""
_PRIOR_COUNTS: Final = tuple(
    (width, weight, weight / prior)
    for prior, width in zip(_PRIOR, _WIDTHS, strict=True)
    for weight in [_PRIOR_WEIGHT * (1 - exp(-prior * width))]
)
"""Of each level: its width, and what the prior counts for: jobs that ended, and their seconds."""


def level_of(served_s: Seconds) -> int:
    """Finds the level of an amount of service.

    Args:
        served_s: Seconds of service, at least 0.

    Returns:
        0 below the first edge, and one more at each.
    """
    return bisect_right(EDGES_S, served_s + _SLACK_S)


def size_class(gpus: int) -> int:
    """Groups gangs whose run times are counted together.

    Args:
        gpus: Of a request.

    Returns:
        0 for none, 1 for one, and one more at each doubling.
    """
    return gpus.bit_length()


def _nothing() -> list[float]:
    return [0.0] * LEVELS


@dataclass(slots=True, kw_only=True)
class Counts:
    """What was seen of jobs of one size.

    Attributes:
        ended: How many ended in each level.
        seconds: How long they spent in each level.
        scores: What follows from it, see `History.score`.
    """

    ended: list[float] = field(default_factory=_nothing)
    seconds: list[float] = field(default_factory=_nothing)
    scores: list[float] = field(default_factory=lambda: list(_PRIOR_SCORES))


@dataclass(slots=True, kw_only=True)
class History:
    """What was seen of all jobs.

    Attributes:
        ended: How many ended in each level, of any size.
        seconds: How long they spent in each level.
        sizes: By size class.
        observations: How many there were; scores change with it.
    """

    ended: list[float] = field(default_factory=_nothing)
    seconds: list[float] = field(default_factory=_nothing)
    sizes: dict[int, Counts] = field(default_factory=dict)
    observations: int = 0

    def observe(self, size: int, level: int, seconds: Seconds, *, has_ended: bool) -> None:
        """Counts a job that ended in a level or passed all of it.

        Args:
            size: Its size class.
            level: The level.
            seconds: How long it spent in that.
            has_ended: Whether it ended by itself there.
        """
        counts = self.sizes.setdefault(size, Counts())
        counts.ended[level] = counts.ended[level] * _KEPT + has_ended
        counts.seconds[level] = counts.seconds[level] * _KEPT + seconds
        self.ended[level] += has_ended
        self.seconds[level] += seconds
        self.observations += 1
        counts.scores = _scores(self._chances(counts))

    def score(self, size: int, level: int) -> float:
        """Ranks a job by how soon it is likely done.

        Args:
            size: Its size class.
            level: Its level of service.

        Returns:
            The logarithm to base 2 of seconds; smaller is sooner, `LAST_SCORE` in the last level.
        """
        counts = self.sizes.get(size)
        return (_PRIOR_SCORES if counts is None else counts.scores)[level]

    def _chances(self, counts: Counts) -> list[float]:
        """Chances a second of ending in each level, shrunk to those of all sizes and the prior."""
        chances = []
        for level, (width, weight, seconds) in enumerate(_PRIOR_COUNTS):
            pooled = (self.ended[level] + weight) / (self.seconds[level] + seconds)
            belief = _POOL_WEIGHT * (1 - exp(-pooled * width))
            chances.append(
                (counts.ended[level] + belief) / (counts.seconds[level] + belief / pooled)
            )
        return chances


def _scores(chances: list[float]) -> list[float]:
    """Turns chances into the score of each level."""
    rates = [
        (1 - exp(-chance * width), chance) for chance, width in zip(chances, _WIDTHS, strict=True)
    ]
    scores = []
    for first in range(LEVELS - 1):
        alive, spent, best = 1.0, 0.0, 0.0
        for ends, chance in rates[first:]:
            spent += alive * ends / chance
            alive *= 1 - ends
            best = max(best, (1 - alive) / spent)
        scores.append(-log2(best))
    return [*scores, LAST_SCORE]


_PRIOR_SCORES: Final[tuple[float, ...]] = tuple(_scores(list(_PRIOR)))
