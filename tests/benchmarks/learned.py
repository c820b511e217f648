"""A policy whose constants are learned: the default's form, with weights, and a search for these.

All weights 0 is the default policy to the digit. What they change is known to the core without run
times: the service that a job has had, the index that its size has there, its GPUs, how long it has
waited, and how many wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from math import exp2, log2
from random import Random
from typing import Self

from workbench.core.history import LAST_SCORE, LEVELS, RESTART_S
from workbench.core.job import Job, useful_s
from workbench.core.model import Seconds
from workbench.core.state import State
from workbench.policies.gittins import Gittins

STEP = 0.5
LEAST_STEP = 0.15
"""Replays are rough: smaller steps find luck."""
GROWTH = 1.5
MOVED = 0.2
"""Of the coordinates, in each step."""
BEHIND = 0.3
"""In sum over cases: a child that is so far behind its parent is not tried any further."""
SHRINKAGE = 0.002
"""What a squared weight costs: where the cases do not tell, the default's constants stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What is learned; 1 is a doubling, or as much as one may think of trying.

    Attributes:
        restarts: Doublings of the restarts that are waited for.
        work: Doublings of the part of a running job's work that is waited for.
        alike: Doublings of the hour among jobs that rank alike.
        clearly: Halves of a doubling by which an index has to be better.
        bound: Doublings of the 8 hours until a job is overdue.
        gpus: Quarters of a doubling in the index for each doubling of GPUs.
        last_gpus: The same in the last level, whose jobs all rank alike else.
        service: Quarters of a doubling in the index for each level of service.
        spared: Halves of a power of how much wider the running job is.
        queue: Halves of a power of how many wait.
        submitted: Halves of the way from the order of entry into a level to that of submission.
    """

    restarts: float = 0.0
    work: float = 0.0
    alike: float = 0.0
    clearly: float = 0.0
    bound: float = 0.0
    gpus: float = 0.0
    last_gpus: float = 0.0
    service: float = 0.0
    spared: float = 0.0
    queue: float = 0.0
    submitted: float = 0.0

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Name values that are in the order of the attributes."""
        return cls(**dict(zip(NAMES, values, strict=True)))

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:+.2f}" for name, value in asdict(self).items())


NAMES = tuple(field.name for field in fields(Weights))


class Learned(Gittins):
    """The default policy with weights."""

    name = "learned"

    def __init__(self, weights: Weights) -> None:
        self._of_gpus = weights.gpus / 4
        self._of_last_gpus = weights.last_gpus / 4
        self._of_service = weights.service / 4
        self._restarts_s = 3 * RESTART_S * exp2(weights.restarts)
        self._work = 0.3 * exp2(weights.work)
        self._alike_s = 3600.0 * exp2(weights.alike)
        self._clearly = max(1 + weights.clearly / 2, 0.0)
        self._spared = max(1 + weights.spared / 2, 0.0)
        self._queue = max(1 + weights.queue / 2, 0.0)
        self._submitted = min(max(weights.submitted / 2, 0.0), 1.0)
        self.bound_s: Seconds | None = 28800.0 * exp2(weights.bound)

    def score(self, state: State, tier: int, gpus: int, /) -> float:
        """Adds to the index what GPUs and service weigh."""
        wide = log2(max(gpus, 1))
        if tier == LEVELS - 1:
            return LAST_SCORE + self._of_last_gpus * wide
        own = super().score(state, tier, gpus)
        return own + self._of_gpus * wide + self._of_service * tier

    def key(self, _state: State, job: Job, /) -> float:
        """Orders by a time between entry into the level and submission."""
        return job.entered_at + self._submitted * (job.submitted_at - job.entered_at)

    def patience_s(
        self, state: State, running: Job, waiting: Job, gap: float, score: float, /
    ) -> Seconds | None:
        """Says how long a job waits until a running one gives way to it; as the default does."""
        if gap < 0:
            return None
        is_clear = gap >= self._clearly + log2(1 + RESTART_S / 2.0**score)
        if not is_clear and (self.key(state, running), running.number) < (
            self.key(state, waiting),
            waiting.number,
        ):
            return None
        width, own_width = running.request.gpus or 1, waiting.request.gpus or 1
        wider: float = max(width / own_width, 1.0) ** self._spared
        part = width / (len(state.devices) or 1)
        waiting_jobs: float = (state.waiting_jobs or 1) ** self._queue
        patience_s = self._restarts_s * wider
        patience_s += self._work * useful_s(running, state.at) * part / waiting_jobs
        return patience_s if is_clear else max(patience_s, self._alike_s)


def search(losses: Callable[[Weights], Iterable[float]], tries: int, seed: int) -> Weights:
    """Find weights by an evolution strategy, from the default's on.

    One parent, one child at a time; a child that is no worse replaces its parent. The step grows
    with each success and shrinks with each failure, so that one in five succeeds. A child is given
    up as soon as it has fallen far behind.

    Args:
        losses: What is made small in sum, one case after another, the quick ones first.
        tries: How many children there are.
        seed: Of what is drawn.

    Returns:
        The last parent; the default's weights if no child was better.

    Source: Rechenberg, "Evolutionsstrategie" (1973), for the rule of one in five; with steps in a
    part of the coordinates.
    """
    random = Random(seed)
    parent = astuple(Weights())
    known = list(losses(Weights()))
    step = STEP
    for number in range(tries):
        moved = [random.random() < MOVED for _ in NAMES]
        moved[random.randrange(len(NAMES))] = True
        child = tuple(
            at + random.gauss(0, step) * is_moved
            for at, is_moved in zip(parent, moved, strict=True)
        )
        found = _until_behind(losses(Weights.of(child)), known)
        cost = SHRINKAGE * len(known)
        is_better = len(found) == len(known) and (
            sum(found) + cost * _square(child) <= sum(known) + cost * _square(parent)
        )
        step = max(step * (GROWTH if is_better else GROWTH**-0.25), LEAST_STEP)
        if is_better:
            parent, known = child, found
            loss = sum(known) / len(known)
            print(f"  try {number + 1}: loss {loss:+.4f}, step {step:.2f}", flush=True)
    return Weights.of(parent)


def _until_behind(losses: Iterable[float], known: Sequence[float]) -> list[float]:
    found: list[float] = []
    lead = 0.0
    for loss, other in zip(losses, known, strict=False):
        found.append(loss)
        lead += loss - other
        if lead > BEHIND:
            break
    return found


def _square(values: Sequence[float]) -> float:
    return sum(value * value for value in values)
