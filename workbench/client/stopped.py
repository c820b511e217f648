"""Remembers that the user stopped the services, so that whoever merely waits starts none again.

Each act of the user starts what it needs: `workbench up`, a scheduled cell, a cancel. A watch that
lost its controller, or a cell that waits for its job, only looks whether it is back.
"""

from __future__ import annotations

from pathlib import Path

from workbench.transport.errors import NobodyListens
from workbench.transport.paths import runtime_directory


class Stopped(NobodyListens):
    """The user has stopped it, and has asked for nothing since."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"your {what} was stopped with `workbench down`",
            next_step="`workbench up`, or the next scheduled cell, starts it again",
        )


def note_stop() -> None:
    """Have nothing started by those who wait."""
    _mark().touch(mode=0o600)


def resume() -> None:
    """The user asks for something: what it needs may be started."""
    _mark().unlink(missing_ok=True)


def is_stopped() -> bool:
    """Whether the user has stopped the services and asked for nothing since."""
    return _mark().exists()


def _mark() -> Path:
    return runtime_directory() / "stopped"
