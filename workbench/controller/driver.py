"""The single writer around the pure core: event, journal, and only then reply and carry out.

    requests (submit, cancel)      either in the journal, or refused with the journal's error
    facts (lease over, GPU lost)   stay true while the journal cannot be written: kept, tried again

Everything that arrives in one turn of the event loop goes into one transaction (group commit).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from workbench.controller.errors import JournalUnwritten
from workbench.controller.log import LOG
from workbench.core.decisions import AboutJob, Decision
from workbench.core.errors import BugError, PeerError, UserError, WorkbenchError
from workbench.core.events import Event, Tick
from workbench.core.scheduler import Scheduler
from workbench.core.standings import Standings
from workbench.core.state import State

Fact = Callable[..., Event]
"""An event but for its time: the driver calls it with `at=`."""

RETRY_S: Final = 1.0
"""How long after a failed write the journal is tried again."""


class Journal(Protocol):
    """What the driver needs of the journal."""

    def append(self, entries: Sequence[Event | Decision]) -> None:
        """Write all entries in one transaction, durably; raise `PeerError` and write none."""

    @property
    def is_compaction_due(self) -> bool:
        """Whether a snapshot would make the next start quicker."""

    def compact(self, state: State) -> None:
        """Write a snapshot; raise `PeerError` and leave the one before."""


class Clock(Protocol):
    """Tells the lab's time."""

    def now(self) -> float:
        """Return the lab's time in seconds, never less than before."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Entry:
    fact: Fact
    done: asyncio.Future[list[Decision]]
    kept: bool


class _Culprit(Exception):  # never leaves this module
    """The core choked on this entry; its state can no longer be trusted."""

    def __init__(self, entry: _Entry, cause: Exception) -> None:
        super().__init__(cause)
        self.entry = entry
        self.cause = cause


class Driver:
    """Drives the core. Only its event loop's thread may call it.

    Args:
        scheduler: What the journal says.
        restore: Folds the journal again; raises `PeerError` where it cannot be read.
        journal: Where events and decisions are written.
        clock: The lab's clock.
        carry_out: Called with decisions once they are in the journal.
        on_change: Called after each transaction and when the journal's health changes.
    """

    def __init__(
        self,
        *,
        scheduler: Scheduler,
        restore: Callable[[], Scheduler],
        journal: Journal,
        clock: Clock,
        carry_out: Callable[[Sequence[Decision]], None],
        on_change: Callable[[], None],
    ) -> None:
        self._restore = restore
        self._journal = journal
        self._clock = clock
        self._carry_out = carry_out
        self._on_change = on_change
        self._scheduler = scheduler
        self._is_stale = False
        self._queue: list[_Entry] = []
        self._loop = asyncio.get_running_loop()
        self._flushing: asyncio.Handle | None = None
        self._waking: asyncio.TimerHandle | None = None
        self.trouble: PeerError | None = None
        """Why the journal could not be written last time; None while all is well."""

    @property
    def state(self) -> State:
        """What the core knows now. Read it, never change it."""
        return self._scheduler.state

    @property
    def standings(self) -> Standings:
        """Where the jobs stand. Read it, never change it."""
        return self._scheduler.standings

    def unconfirmed(self) -> list[AboutJob]:
        """Return the decisions that no event has confirmed yet, oldest first."""
        return list(self._scheduler.unconfirmed())

    async def ask(self, fact: Fact) -> list[Decision]:
        """Hand a user's request to the core; return its decisions once they are durable.

        Raises:
            UserError: The core refused it; nothing was written.
            JournalUnwritten: It could not be written; nothing changed.
        """
        return await self._enqueue(fact, kept=False)

    def note(self, fact: Fact) -> asyncio.Future[list[Decision]]:
        """Tell the core what has happened, again and again until it is durable.

        Returns:
            Its decisions. It fails only where the core calls the event illegal.
        """
        done = self._enqueue(fact, kept=True)
        done.add_done_callback(_log_refusal)
        return done

    def close(self) -> None:
        """Write what is queued and stop the timers."""
        if self._waking is not None:
            self._waking.cancel()
        if self._flushing is not None:
            self._flushing.cancel()
            self._flush()
        if self._waking is not None:
            self._waking.cancel()

    def _enqueue(self, fact: Fact, *, kept: bool) -> asyncio.Future[list[Decision]]:
        done: asyncio.Future[list[Decision]] = self._loop.create_future()
        self._queue.append(_Entry(fact=fact, done=done, kept=kept))
        self._flush_soon()
        return done

    def _flush_soon(self) -> None:
        if self._flushing is None:
            self._flushing = self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write all that is queued in one transaction."""
        self._flushing = None
        queue, self._queue = self._queue, []
        accepted: list[tuple[_Entry, list[Decision]]] = []
        try:
            self._refresh()
            lines = self._fold(queue, accepted)
            if lines:
                self._journal.append(lines)
        except PeerError as error:
            self._on_unwritten(queue, error)
            return
        except Exception as error:  # noqa: BLE001 -- the driver loop's top
            self._on_bug(queue, error)
            return
        self._set_trouble(None)
        for entry, decisions in accepted:
            _settle(entry, decisions)
        self._compact()
        self._wake_later()
        self._carry_out([decision for _, decisions in accepted for decision in decisions])
        self._on_change()

    def _fold(
        self, queue: list[_Entry], accepted: list[tuple[_Entry, list[Decision]]]
    ) -> list[Event | Decision]:
        """Hand each entry to the core; a refused one is answered and leaves no line."""
        lines: list[Event | Decision] = []
        for entry in queue:
            event = entry.fact(at=self._clock.now())
            try:
                decisions = self._scheduler.handle(event)
            except UserError as error:
                _fail(entry, error)
                continue
            except Exception as error:
                raise _Culprit(entry, error) from error
            lines.append(event)
            lines.extend(decisions)
            accepted.append((entry, decisions))
        return lines

    def _compact(self) -> None:
        try:
            if self._journal.is_compaction_due:
                self._journal.compact(self._scheduler.state)
        except PeerError as error:
            LOG.warning("no snapshot was written, the entries stay in force: %s", error)

    def _refresh(self) -> None:
        """Fold the journal again where the last write failed, so that nothing unwritten stays."""
        if self._is_stale:
            self._scheduler = self._restore()
            self._is_stale = False

    def _on_unwritten(self, queue: list[_Entry], error: PeerError) -> None:
        """Undo what was not written, answer the requests and keep the facts for later."""
        self._is_stale = True
        try:
            self._refresh()
        except PeerError as unreadable:
            LOG.error("the journal cannot be read either: %s", unreadable)
        refusal = JournalUnwritten(
            f"the journal could not be written, so nothing changed: {error.message}",
            next_step=error.next_step
            or "Free the disk that holds the state directory; running jobs go on",
        )
        self._set_trouble(refusal)
        for entry in queue:
            if entry.kept and (entry.done.cancelled() or not entry.done.done()):
                self._queue.append(entry)
            else:
                _fail(entry, refusal)
        self._wake_at(self._loop.time() + RETRY_S, probe=True)
        self._on_change()

    def _on_bug(self, queue: list[_Entry], error: Exception) -> None:
        """Answer the entry that the core choked on, go back to the journal and do the others."""
        LOG.error("a bug; the state is restored from the journal", exc_info=error)
        self._is_stale = True
        culprits = [error.entry] if isinstance(error, _Culprit) else queue
        cause = error.cause if isinstance(error, _Culprit) else error
        for entry in culprits:
            _fail(entry, BugError(f"the controller met a bug of its own: {cause!r}"))
        self._queue = [entry for entry in queue if entry not in culprits] + self._queue
        self._flush_soon()

    def _set_trouble(self, trouble: PeerError | None) -> None:
        if trouble is not None and self.trouble is None:
            LOG.error("%s", trouble)
        if trouble is None and self.trouble is not None:
            LOG.info("the journal can be written again")
        self.trouble = trouble

    def _wake_later(self) -> None:
        """Have a Tick sent when the core wants one."""
        wakeup = self._scheduler.next_wakeup()
        if wakeup is None:
            if self._waking is not None:
                self._waking.cancel()
            return
        self._wake_at(self._loop.time() + max(0.0, wakeup - self._clock.now()), probe=False)

    def _wake_at(self, when: float, *, probe: bool) -> None:
        if self._waking is not None:
            self._waking.cancel()
        self._waking = self._loop.call_at(when, self._tick, probe)

    def _tick(self, probe: bool) -> None:  # noqa: FBT001 -- call_at passes by position
        """Send a Tick; while the journal fails, kept facts are the probe if there are any."""
        self._waking = None
        if probe and self._queue:
            self._flush_soon()
        else:
            self._enqueue(Tick, kept=False).add_done_callback(_log_refusal)


def _settle(entry: _Entry, decisions: list[Decision]) -> None:
    if not entry.done.done():
        entry.done.set_result(decisions)


def _fail(entry: _Entry, error: WorkbenchError) -> None:
    if not entry.done.done():
        entry.done.set_exception(error)


def _log_refusal(done: asyncio.Future[list[Decision]]) -> None:
    """Note that an error was seen: nobody else may be waiting for it."""
    if not done.cancelled() and (error := done.exception()) is not None:
        LOG.error("a fact was not taken: %s", error)
