"""Units kept for a waiting job that does not fit yet: who may use them until then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from workbench.core.job import Job
from workbench.core.model import JobId, JobState, Seconds, Shape, Units
from workbench.core.placement import Pool
from workbench.core.state import State, expected_end

_NEVER: Final = float("inf")


@dataclass(slots=True, kw_only=True)
class Reservation:
    """Units kept for a waiting job from a time on.

    Attributes:
        job: For whom.
        shape: What it asks for.
        at: When it can start if all goes as expected; None is unknown.
        free_then: What is free then, the job's own units among it.
    """

    job: JobId
    shape: Shape
    at: Seconds | None
    free_then: Pool

    def allows(self, units: Units, end: Seconds | None) -> bool:
        """Tells whether a job may start now without putting this one off.

        Args:
            units: What it would get, all of it free now.
            end: When it likely ends; None is unknown.

        Returns:
            Whether it is gone by then, or leaves enough.
        """
        if self._is_gone(end):
            return True
        left = self.free_then.copy()
        left.take(units)
        return left.place(self.shape) is not None

    def take(self, units: Units, end: Seconds | None) -> None:
        """Notes that a job that `allows` let pass starts.

        Args:
            units: What it gets.
            end: When it likely ends.
        """
        if not self._is_gone(end):
            self.free_then.take(units)

    def _is_gone(self, end: Seconds | None) -> bool:
        # As in `reserve`, whose unknown ends come after all known ones.
        return end is not None and (self.at is None or end <= self.at)


class Lane:
    """The part of a lab that overdue jobs get before all others.

    Args:
        state: The state; it is not changed.
        part: Of its GPUs and cores.
        settled: What those asked for that hold leases in it.
    """

    def __init__(self, state: State, part: float, settled: Iterable[Shape]) -> None:
        self._all_gpus = self._gpus = part * len(state.devices)
        self._all_cores = self._cores = part * (state.host.cores if state.host else 0)
        for shape in settled:
            self.take(shape)

    def is_for(self, shape: Shape) -> bool:
        """Tells whether a job of this shape is not larger than all of it.

        Args:
            shape: What it asks for; of a job with GPUs only those count.
        """
        return shape.gpus <= self._all_gpus if shape.gpus else shape.cores <= self._all_cores

    def has_room(self, shape: Shape) -> bool:
        """Tells whether a job of this shape is not too large for what is left of it.

        Args:
            shape: What it asks for.
        """
        return shape.gpus <= self._gpus if shape.gpus else shape.cores <= self._cores

    def take(self, shape: Shape) -> None:
        """Notes that such a job starts.

        Args:
            shape: What it asks for.
        """
        if shape.gpus:
            self._gpus -= shape.gpus
        else:
            self._cores -= shape.cores


class Going(NamedTuple):
    """What a round has decided so far.

    Attributes:
        granted: What jobs get that start now, or for which others give way.
        leaving: Jobs that are on their way out.
    """

    granted: Mapping[JobId, Units]
    leaving: Mapping[JobId, object]


def reserve(
    state: State,
    pool: Pool,
    job: Job,
    shape: Shape,
    going: Going,
    others: list[Reservation],
) -> Reservation | None:
    """Finds when a job that does not fit can start, as leases end.

    Args:
        state: The state; it is not changed.
        pool: What is free now.
        job: The waiting job.
        shape: What it asks for.
        going: What was decided so far.
        others: Reservations that come before it.

    Returns:
        The reservation; None where it would not even fit when all leases are over.
    """
    then = pool.copy()
    for other in others:
        units = other.free_then.place(other.shape)
        if units is not None:
            then.take(units)
    for end, _, units in _endings(state, job, going):
        then.give_back(units)
        if then.place(shape) is not None:
            at = None if end == _NEVER else end
            return Reservation(job=job.id, shape=shape, at=at, free_then=then)
    return None


def _endings(state: State, job: Job, going: Going) -> list[tuple[Seconds, int, Units]]:
    """Leases as they are expected to end: those that give way first, the unknown last."""
    yielding = state.yielding.get(job.id, ())
    live = [state.jobs[holder] for holder in state.leases.values()]
    held = [(holder, holder.grant.units) for holder in live if holder.grant]
    held += [(state.jobs[one], units) for one, units in going.granted.items()]
    endings: list[tuple[Seconds, int, Units]] = []
    for order, (holder, units) in enumerate(held):
        end, later = expected_end(state, holder), units
        is_going = holder.state is JobState.STOPPING or holder.id in going.leaving
        if is_going and (
            holder.id in yielding or holder.preempt is None or holder.preempt.winner is None
        ):
            end = state.at
        elif holder.id in state.suspended and holder.id not in going.granted:
            end = None
        elif holder.id in yielding:
            now, later = _in_parts(holder, units)
            endings.append((state.at, -1 - order, now))
        endings.append((_NEVER if end is None else end, order, later))
    return sorted(endings)


def _in_parts(holder: Job, units: Units) -> tuple[Units, Units]:
    """Splits what a job holds into what it is about to give to another one, and the rest."""
    if holder.preempt is not None or holder.ladder is None:
        return units, Units()
    shrink = holder.ladder.shrink
    if shrink is None:
        return Units(cores=units.cores), replace(units, cores=0)
    left = tuple(gpu for gpu in units.gpus if gpu not in shrink.gpus)
    return Units(gpus=shrink.gpus), replace(units, gpus=left)
