"""The single writer: written before it is told, one transaction a turn, back to the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from workbench.controller.driver import Driver
from workbench.controller.errors import JournalUnwritten
from workbench.core.decisions import Decision, Grant
from workbench.core.errors import BugError, NeverFits
from workbench.core.events import (
    AgentConnected,
    Event,
    HostSeen,
    JobSubmitted,
    LeaseEnded,
    LeaseStarted,
    Tick,
)
from workbench.core.model import JobId, LeaseId, Outcome, Request, Uid
from workbench.core.scheduler import Scheduler
from workbench.core.state import State
from workbench.journal.errors import JournalError
from workbench.journal.journal import Journal
from workbench.policies.fifo import Fifo

ME = Uid(1000)


class Recorder:
    """A real journal that counts its transactions and can be told to fail."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.batches: list[list[Event | Decision]] = []
        self.fails = False
        self.carried: list[Decision] = []
        self.changed = asyncio.Event()

    def append(self, entries: Sequence[Event | Decision]) -> None:
        if self.fails:
            raise JournalError("the journal cannot grow: the disk is full")
        self.journal.append(entries)
        self.batches.append(list(entries))

    @property
    def is_compaction_due(self) -> bool:
        return self.journal.is_compaction_due

    def compact(self, state: State) -> None:
        self.journal.compact(state)

    def restore(self) -> Scheduler:
        return Scheduler.restore(Fifo(), self.journal.entries(), self.journal.snapshot())

    def carry_out(self, decisions: Sequence[Decision]) -> None:
        """Carrying out begins when the decision is in the journal already."""
        written = list(self.journal.entries())
        assert all(decision in written for decision in decisions)
        self.carried += decisions


class Clock:
    """A clock that stands at 1, 2, 3…"""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        self.at += 1.0
        return self.at


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    with Journal.open(tmp_path / "journal.sqlite3") as journal:
        yield Recorder(journal)


@pytest.fixture
async def driver(recorder: Recorder) -> Driver:
    driver = Driver(
        scheduler=recorder.restore(),
        restore=recorder.restore,
        journal=recorder,
        clock=Clock(),
        carry_out=recorder.carry_out,
        on_change=recorder.changed.set,
    )
    await driver.note(partial(HostSeen, cores=4, memory_bytes=2**30))
    await driver.note(partial(AgentConnected, owner=ME))
    recorder.batches.clear()
    return driver


def submitted(number: int, *, cores: int = 1) -> partial[Event]:
    return partial(
        JobSubmitted,
        job=JobId(f"{number:032x}"),
        owner=ME,
        request=Request(cores=cores),
        name=f"job {number}",
        notebook=None,
    )


async def test_what_comes_together_is_written_in_one_transaction(
    driver: Driver, recorder: Recorder
) -> None:
    answers = await asyncio.gather(*(driver.ask(submitted(number)) for number in range(3)))
    [batch] = recorder.batches
    kinds = [type(entry).__name__ for entry in batch]
    assert kinds == ["JobSubmitted", "Grant"] * 3
    assert [decision for answer in answers for decision in answer] == recorder.carried
    driver.close()


async def test_a_refused_request_leaves_no_line_and_hinders_no_other(
    driver: Driver, recorder: Recorder
) -> None:
    answers = await asyncio.gather(
        driver.ask(submitted(1)),
        driver.ask(submitted(2, cores=100)),
        driver.ask(submitted(3)),
        return_exceptions=True,
    )
    assert isinstance(answers[1], NeverFits)
    [batch] = recorder.batches
    assert [entry.job for entry in batch if isinstance(entry, JobSubmitted)] == [
        JobId(f"{1:032x}"),
        JobId(f"{3:032x}"),
    ]
    driver.close()


async def test_nothing_is_carried_out_or_kept_that_was_not_written(
    driver: Driver, recorder: Recorder
) -> None:
    recorder.fails = True
    with pytest.raises(JournalUnwritten, match="disk is full"):
        await driver.ask(submitted(1))
    assert recorder.carried == []
    assert dict(driver.state.jobs) == {}
    assert driver.trouble is not None
    recorder.fails = False
    [grant] = await driver.ask(submitted(2))
    assert isinstance(grant, Grant)
    assert driver.trouble is None
    assert recorder.restore().state == driver.state
    driver.close()


async def test_a_fact_is_told_again_until_it_is_written(driver: Driver, recorder: Recorder) -> None:
    [grant] = await driver.ask(submitted(1))
    assert isinstance(grant, Grant)
    recorder.fails = True
    started = driver.note(partial(LeaseStarted, lease=grant.lease))
    ended = driver.note(partial(LeaseEnded, lease=grant.lease, outcome=Outcome.DONE, detail=""))
    with pytest.raises(JournalUnwritten):
        await driver.ask(submitted(2))
    assert not started.done()
    assert driver.trouble is not None
    recorder.fails = False
    await asyncio.wait_for(asyncio.gather(started, ended), 10)
    assert [type(entry) for entry in recorder.batches[-1]] == [LeaseStarted, LeaseEnded]
    driver.close()


async def test_a_journal_that_can_be_written_again_is_noticed_without_a_request(
    driver: Driver, recorder: Recorder
) -> None:
    recorder.fails = True
    with pytest.raises(JournalUnwritten):
        await driver.ask(submitted(1))
    recorder.fails = False
    async with asyncio.timeout(10):
        while driver.trouble is not None:
            recorder.changed.clear()
            await recorder.changed.wait()
    assert [type(entry) for entry in recorder.batches[-1]] == [Tick]
    driver.close()


async def test_an_event_that_cannot_be_is_a_bug_and_hinders_no_other(
    driver: Driver, recorder: Recorder
) -> None:
    before = driver.note(submitted(1))
    culprit = driver.note(partial(LeaseStarted, lease=LeaseId("L99")))
    after = driver.note(submitted(2))
    assert len(await asyncio.wait_for(before, 10)) == 1
    assert len(await asyncio.wait_for(after, 10)) == 1
    assert isinstance(culprit.exception(), BugError)
    assert recorder.restore().state == driver.state
    assert len(driver.state.jobs) == 2
    driver.close()


async def test_a_requester_that_went_away_does_not_undo_its_request(
    driver: Driver, recorder: Recorder
) -> None:
    asking = asyncio.ensure_future(driver.ask(submitted(1)))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await driver.ask(submitted(2))
    assert len(driver.state.jobs) == 2
    driver.close()


async def test_what_is_queued_at_the_end_is_written(driver: Driver, recorder: Recorder) -> None:
    noted = driver.note(submitted(1))
    driver.close()
    assert noted.done()
    assert len(recorder.restore().state.jobs) == 1
