"""Errors shared by every layer.

WorkbenchError
├── UserError        the caller asked for something that cannot be; says what to change
│   ├── NeverFits    the request is larger than this host could ever give
│   └── BookingConflict  others booked the GPUs for that time
├── PeerError        another process, the driver or the disk failed; says what to do about it
└── BugError         Workbench itself is wrong
    ├── IllegalEvent an event that cannot follow the present state; the state is unchanged
    └── BrokenInvariant the core's state contradicts itself; start again from the journal
"""

from __future__ import annotations


class WorkbenchError(Exception):
    """Base of all errors that Workbench raises on purpose.

    Args:
        message: What happened: names the value and the rule.
        next_step: What the reader can do now; empty where there is nothing to do.
    """

    def __init__(self, message: str, *, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message}. {self.next_step}" if self.next_step else self.message


class UserError(WorkbenchError):
    """The caller asked for something that cannot be; the message says what to change."""


class PeerError(WorkbenchError):
    """Another process, the driver or the disk failed; the message says what to do about it."""


class BugError(WorkbenchError):
    """Workbench itself is wrong."""


class NeverFits(UserError):
    """The request is larger than this host could ever give; nothing was queued."""


class BookingConflict(UserError):
    """Others booked the GPUs for that time.

    Args:
        message: As for all errors.
        next_step: As for all errors.
        booking: The id of a booking that is in the way.
        free_at: When it could begin instead, the nearest time on the lab's clock; None where no
            such time was found.
    """

    def __init__(
        self, message: str, *, next_step: str, booking: str, free_at: float | None
    ) -> None:
        super().__init__(message, next_step=next_step)
        self.booking = booking
        self.free_at = free_at


class IllegalEvent(BugError):
    """An event that cannot follow the present state; the state is unchanged."""


class BrokenInvariant(BugError):
    """The core's state contradicts itself; a driver starts again from the journal."""
