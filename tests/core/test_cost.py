"""What an event costs, counted in calls and not in time."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.core.builders import ALICE, GIB, Uid, seen, submitted
from workbench.core.events import AgentConnected, HostSeen, LeaseEnded, LeaseStarted, Tick
from workbench.core.job import Job
from workbench.core.model import LeaseId, Outcome
from workbench.core.placement import Pool
from workbench.core.policy import Ordering
from workbench.core.scheduler import Scheduler
from workbench.core.state import State

OWNERS = [Uid(1001 + number) for number in range(3)]
SHAPES = [{"gpus": 1}, {"gpus": 2}, {"gpus": 1, "cores": 2}]


class CountingFifo(Ordering):
    name = "counting"

    def __init__(self) -> None:
        self.calls = 0

    def key(self, _state: State, _job: Job, /) -> float:
        self.calls += 1
        return 0.0


@contextmanager
def counted_placements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    calls = [0]
    place = Pool.place

    def counting_place(*args: object) -> object:
        calls[0] += 1
        return place(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Pool, "place", counting_place)
        yield calls


def full_lab(waiting: int) -> tuple[Scheduler, CountingFifo]:
    """Two GPUs, both leased by a job that runs, and a queue behind them."""
    policy = CountingFifo()
    scheduler = Scheduler(policy)
    scheduler.handle(HostSeen(at=0, cores=64, memory_bytes=64 * GIB))
    for number in range(2):
        scheduler.handle(seen(0, number))
    for owner in OWNERS:
        scheduler.handle(AgentConnected(at=0, owner=owner))
    scheduler.handle(submitted(0, "holder", gpus=2))
    scheduler.handle(LeaseStarted(at=0, lease=LeaseId("L0")))
    for number in range(waiting):
        owner = OWNERS[number % len(OWNERS)]
        shape = SHAPES[number // len(OWNERS) % len(SHAPES)]
        assert scheduler.handle(submitted(0, f"j{number}", owner, **shape)) == []
    return scheduler, policy


def cost_of_events(waiting: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Placements and policy calls of: a tick, a submission, an ending that grants."""
    scheduler, policy = full_lab(waiting)
    ending = LeaseEnded(at=1, lease=LeaseId("L0"), outcome=Outcome.DONE, detail="")
    costs = []
    for event in (Tick(at=1), submitted(1, "new", ALICE, gpus=1), ending):
        policy.calls = 0
        with counted_placements(monkeypatch) as placements:
            scheduler.handle(event)
        costs.append((placements[0], policy.calls))
    return costs


def test_an_event_costs_no_more_in_a_long_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = (cost_of_events(waiting, monkeypatch) for waiting in (30, 10_000))
    assert long == short
    # Placements where units are free at all: one for each grant, and for each shape left over.
    assert long == [(0, 0), (0, 1), (5, 0)]
