"""Errors of the journal.

PeerError
└── JournalError      the disk or SQLite failed; nothing was written by halves
    └── JournalTooNew a later version of Workbench wrote it
"""

from __future__ import annotations

from workbench.core.errors import PeerError


class JournalError(PeerError):
    """The disk or SQLite failed; nothing was written by halves. Do what `next_step` says."""


class JournalTooNew(JournalError):
    """A later version of Workbench wrote the journal; use that version."""
