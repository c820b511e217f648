"""The journal's tables, and what SQLite's error codes mean for people."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from workbench.journal.errors import JournalError

SCHEMA: Final = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # `position` counts up by one without gaps. Entries up to the snapshot's are the archive.
    "CREATE TABLE entries (position INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL)",
    """CREATE TABLE snapshot (
        one INTEGER PRIMARY KEY CHECK (one = 1), position INTEGER NOT NULL, body BLOB NOT NULL
    )""",
)

_MEANINGS: Final[dict[int, tuple[str, str]]] = {
    sqlite3.SQLITE_BUSY: (
        "is locked by another process",
        "End the other program that has it open, then try again",
    ),
    sqlite3.SQLITE_FULL: (
        "cannot grow: the disk is full",
        "Free space on that disk, then try again",
    ),
    sqlite3.SQLITE_READONLY: (
        "cannot be written",
        "Make the file and its folder writable for this user",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened",
        "Check that its folder exists and that this user may write there",
    ),
    sqlite3.SQLITE_CORRUPT: ("is damaged", "Move it aside to start with an empty one"),
    sqlite3.SQLITE_NOTADB: ("is not a journal", "Move it aside to start with an empty one"),
    sqlite3.SQLITE_PROTOCOL: (
        "cannot be locked on this file system",
        "Put the state directory on a local disk",
    ),
    sqlite3.SQLITE_CONSTRAINT: (
        "was written by another controller",
        "End one of the two controllers",
    ),
}
_OTHERWISE: Final = ("cannot be read or written", "Check the disk, then try again")


def explained(error: sqlite3.Error, path: Path) -> JournalError:
    """Turns an error of SQLite into one that says what to do.

    Args:
        error: What SQLite raised.
        path: Of the journal.

    Returns:
        The error to raise instead.
    """
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    what, next_step = _MEANINGS.get(code, _OTHERWISE)
    return JournalError(f"the journal {path} {what} ({error})", next_step=next_step)
