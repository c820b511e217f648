"""The journal of one lab: one SQLite file, written by one controller.

A batch of entries is on disk as a whole or not at all. A snapshot of the state makes a restart
read only what came after it; the entries before it stay in place as the archive.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from workbench import __version__
from workbench.core.decisions import Decision
from workbench.core.errors import BrokenInvariant
from workbench.core.events import Event
from workbench.core.invariants import check
from workbench.core.state import State
from workbench.journal import codec
from workbench.journal.errors import JournalError, JournalTooNew
from workbench.journal.schema import SCHEMA, explained

SNAPSHOT_EVERY_ENTRIES: Final = 5_000
"""Folding this many entries takes a small part of the second that a restart may take."""

_WRITTEN_BY: Final = "written_by"
"""The row in `meta` that names the version of Workbench that appended last."""


class Journal:
    """An open journal. Not for use by two threads at once. Open it with `Journal.open`.

    Args:
        path: Of the file, for messages.
        connection: To the file, with the schema in place and autocommit on.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._position: int = 0
        self._snapshot_position: int = 0
        self._is_signed = False

    @classmethod
    def open(cls, path: Path, *, busy_timeout_s: float = 5.0) -> Self:
        """Opens a journal, or makes an empty one; its folder must exist.

        Args:
            path: Of the file.
            busy_timeout_s: How long a write waits for another process that has it locked.

        Returns:
            The journal; close it, or use it in a `with` statement.

        Raises:
            JournalTooNew: A later version wrote it; it is left as it is.
            JournalError: It cannot be opened, or is no journal.
        """
        try:
            # Driven by one loop, which may write in a thread of its own to stay responsive.
            connection = sqlite3.connect(
                path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise explained(error, path) from error
        journal = cls(path, connection)
        try:
            with journal._explained():
                journal._prepare()
        except JournalError:
            journal.close()
            raise
        return journal

    def _prepare(self) -> None:
        format_ = int(self._one("PRAGMA user_version"))
        if format_ > codec.FORMAT:
            raise self._too_new(f"format {format_}")
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        if format_ == 0:
            with self._transaction():
                for statement in SCHEMA:
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version={codec.FORMAT}")
        self._position = self._one("SELECT coalesce(max(position), 0) FROM entries")
        self._snapshot_position = self._one("SELECT coalesce(max(position), 0) FROM snapshot")

    def close(self) -> None:
        """Closes the file; a second time changes nothing."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def append(self, entries: Sequence[Event | Decision]) -> None:
        """Writes entries in one transaction: one event with its decisions, or several such.

        Args:
            entries: In the order in which they were folded.

        Raises:
            JournalError: Nothing was written.
        """
        rows = [
            (position, *codec.encode(entry))
            for position, entry in enumerate(entries, start=self._position + 1)
        ]
        with self._explained(), self._transaction():
            self._connection.executemany("INSERT INTO entries VALUES (?, ?, ?)", rows)
            if not self._is_signed:
                self._write_meta(_WRITTEN_BY, __version__)
        self._position += len(rows)
        self._is_signed = True

    @property
    def is_compaction_due(self) -> bool:
        """Whether enough entries came after the snapshot that a new one is worth its time."""
        return self._position - self._snapshot_position >= SNAPSHOT_EVERY_ENTRIES

    def compact(self, state: State) -> None:
        """Keeps a state, so that a restart need not read the entries up to here.

        Args:
            state: The state after the last entry that was appended; it is not changed.

        Raises:
            JournalError: The snapshot before this one is still in force.
        """
        row = (1, self._position, codec.encode_state(state))
        with self._explained(), self._transaction():
            self._connection.execute("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?)", row)
        self._snapshot_position = self._position

    def snapshot(self) -> State | None:
        """Reads the latest snapshot.

        Returns:
            A state of the caller's own; None if there is no snapshot yet.

        Raises:
            JournalError: It is damaged.
        """
        with self._explained():
            row = self._connection.execute("SELECT body FROM snapshot").fetchone()
        if row is None:
            return None
        try:
            state = codec.decode_state(row[0])
            check(state)
        except (msgspec.DecodeError, BrokenInvariant) as error:
            raise self._damaged(f"the snapshot at entry {self._snapshot_position}") from error
        return state

    def entries(self) -> Iterator[Event | Decision]:
        """Reads the entries after the latest snapshot, for a restart.

        Yields:
            Events and decisions in the order in which they were written.

        Raises:
            JournalTooNew: A later version wrote an entry.
            JournalError: An entry is damaged or cannot be read.
        """
        return self._read(after=self._snapshot_position)

    def history(self) -> Iterator[Event | Decision]:
        """Reads all entries since the journal began, for the simulator.

        Yields:
            As `entries`.

        Raises:
            JournalTooNew: As `entries`.
            JournalError: As `entries`.
        """
        return self._read(after=0)

    def _read(self, *, after: int) -> Iterator[Event | Decision]:
        query = "SELECT position, kind, body FROM entries WHERE position > ? ORDER BY position"
        with self._explained():
            for position, kind, body in self._connection.execute(query, (after,)):
                try:
                    yield codec.decode(kind, body)
                except KeyError as error:
                    raise self._too_new(f"the entry {kind!r}") from error
                except msgspec.DecodeError as error:
                    raise self._damaged(f"entry {position} ({kind})") from error

    def get_meta(self, key: str) -> str | None:
        """Reads a fact about the lab that is no event, such as the boot id.

        Args:
            key: Its name.

        Returns:
            Its value; None if it was never set.

        Raises:
            JournalError: It cannot be read.
        """
        with self._explained():
            row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,))
            found: tuple[str] | None = row.fetchone()
        return found[0] if found else None

    def set_meta(self, key: str, value: str) -> None:
        """Writes a fact about the lab that is no event.

        Args:
            key: Its name.
            value: Replaces the one before.

        Raises:
            JournalError: Nothing was written.
        """
        with self._explained(), self._transaction():
            self._write_meta(key, value)

    def _write_meta(self, key: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def _one(self, query: str) -> Any:
        return self._connection.execute(query).fetchone()[0]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # SQLite itself rolls back on a full disk.
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise explained(error, self._path) from error

    def _damaged(self, what: str) -> JournalError:
        return JournalError(
            f"the journal {self._path} is damaged: {what} cannot be read",
            next_step="Move it aside to start with an empty one",
        )

    def _too_new(self, what: str) -> JournalTooNew:
        """Names both versions; a journal too new may lack the row that names its own."""
        theirs = None
        with suppress(JournalError):
            theirs = self.get_meta(_WRITTEN_BY)
        writer = f"Workbench {theirs}" if theirs else "a later version of Workbench"
        return JournalTooNew(
            f"the journal {self._path} was written by {writer} ({what}); this is"
            f" Workbench {__version__}, which reads up to format {codec.FORMAT}",
            next_step="Install that version, or use another state directory",
        )
