"""Errors of the boundary.

UserError
├── CannotCross     a name that the cell reads cannot leave the kernel; nothing was queued
└── RemoteError     stands for what a cell raised and could not itself come back
PeerError
└── BrokenTransfer  inputs or result on disk cannot be read; nothing was changed
"""

from __future__ import annotations

from workbench.core.errors import PeerError, UserError


class CannotCross(UserError):
    """A name that the cell reads cannot leave the kernel; nothing was queued.

    Args:
        message: Names the variable, the path inside it, its type and why.
        next_step: What the user can change.
        name: The variable; empty where no single one is to blame.
    """

    def __init__(self, message: str, *, next_step: str = "", name: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.name = name


class RemoteError(UserError):
    """Stands for an exception of the cell that could not itself come back.

    Args:
        message: The exception's type and text.
    """


class BrokenTransfer(PeerError):
    """Inputs or result on disk cannot be read; the kernel is unchanged."""


class GoneError(Exception):
    """Raised while unpickling, for what refers to something that could not be made."""


class Refused(Exception):
    """Raised while pickling, for an object that must not cross; `pack` turns it into `CannotCross`.

    Args:
        why: The rule, as the end of a sentence that begins with the object's type.
        next_step: What the user can change.
    """

    def __init__(self, why: str, next_step: str) -> None:
        super().__init__(why)
        self.why = why
        self.next_step = next_step
