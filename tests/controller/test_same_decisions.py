"""The simulator and the live controller drive one core: same facts, same decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.controller.driver import Driver
from workbench.core.decisions import Decision, Grant, Lower, Preempt, Raise, Warn
from workbench.core.events import Event, ProgressMade, UseFell, UseRose
from workbench.core.scheduler import Scheduler
from workbench.core.settings import Settings
from workbench.journal.journal import Journal
from workbench.policies import POLICIES
from workbench.simulate.run import Run
from workbench.simulate.traces import read_trace
from workbench.simulate.workload import Cluster, Workload

TRACE = Path(__file__).parents[1] / "simulate" / "traces" / "venus_vcvlY.csv"
CLUSTER = Cluster.parse("2x8")
SETTINGS = Settings(bound_s=None, ageing_s=None)


class RecordedRun(Run):
    """A simulation that writes down what it told the core and what came of it."""

    def __init__(self, workload: Workload, policy: str) -> None:
        super().__init__(workload, POLICIES[policy](), SETTINGS, restart_cost_s=60.0)
        self.told: list[Event] = []
        self.decided: list[Decision] = []

    def end_due(self, at: float) -> bool:
        """Lets the core decide on each ending, as no two come at one instant in a real lab."""
        if super().end_due(at):
            self.carry_out(self.decide(), at)
            return True
        return False

    def measure_due(self, at: float) -> bool:
        """Likewise: each that is measured comes by itself."""
        if super().measure_due(at):
            self.carry_out(self.decide(), at)
            return True
        return False

    def fold(self, event: Event) -> None:
        self.told.append(event)
        super().fold(event)

    def decide(self) -> list[Decision]:
        decisions = super().decide()
        self.decided += decisions
        return decisions


class TraceClock:
    """Shows the time of the event that comes next."""

    at = 0.0

    def now(self) -> float:
        return self.at


def crowded() -> Workload:
    """The trace's first jobs, four times as close together and never two at one instant."""
    jobs = read_trace(TRACE).workload.jobs[:200]
    return Workload.of(
        "crowded",
        [
            replace(job, submit_s=job.submit_s / 4 + number / 1000)
            for number, job in enumerate(jobs)
        ],
    )


def idling() -> Workload:
    """The first of them: every third leaves its GPUs idle for a while, every other tells."""
    return Workload.of(
        "idling",
        [
            replace(
                job,
                idle_from_s=None if number % 3 else 200.0 + number,
                idle_for_s=3000.0,
                reports_progress=number % 2 == 0,
            )
            for number, job in enumerate(crowded().jobs[:80])
        ],
    )


@pytest.mark.parametrize("policy", ["patient", "fifo", "easy", "las"])
async def test_the_live_driver_decides_as_the_simulator_does(tmp_path: Path, policy: str) -> None:
    run = RecordedRun(crowded(), policy)
    carried = await replayed_live(run, tmp_path / "journal.sqlite3", policy)
    assert len([one for one in carried if isinstance(one, Grant)]) >= len(run.records())
    if policy in {"patient", "las"}:
        assert any(isinstance(one, Preempt) for one in carried)
    assert carried == run.decided


@pytest.mark.parametrize("policy", ["patient", "fifo", "srtf"])
async def test_the_live_driver_moves_priorities_as_the_simulator_does(
    tmp_path: Path, policy: str
) -> None:
    run = RecordedRun(idling(), policy)
    carried = await replayed_live(run, tmp_path / "journal.sqlite3", policy)
    assert {Warn, Lower, Raise, Preempt} <= {type(one) for one in carried}
    assert {UseFell, UseRose, ProgressMade} <= {type(one) for one in run.told}
    assert carried == run.decided


async def replayed_live(run: RecordedRun, path: Path, policy: str) -> list[Decision]:
    """What a live driver has carried out when it was told what the simulation told the core."""
    run.open(CLUSTER, is_pool=False)
    run.play()

    carried: list[Decision] = []

    def carry_out(decisions: Sequence[Decision]) -> None:
        carried.extend(decisions)

    with Journal.open(path) as journal:

        def restore() -> Scheduler:
            entries, snapshot = journal.entries(), journal.snapshot()
            return Scheduler.restore(POLICIES[policy](), entries, snapshot, SETTINGS)

        clock = TraceClock()
        driver = Driver(
            scheduler=restore(),
            restore=restore,
            journal=journal,
            clock=clock,
            carry_out=carry_out,
            on_change=lambda: None,
        )
        for event in run.told:
            clock.at = event.at
            await driver.ask(lambda at, event=event: replace(event, at=at))
        driver.close()
    return carried
