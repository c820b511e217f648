"""Signals as something to wait for in a poll. Standard library only."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterable
from typing import Final

_READ_BYTES: Final = 4096


class Wakeup:
    """Becomes readable when one of the signals arrives; one a process.

    Args:
        signums: The signals to take.
    """

    def __init__(self, signums: Iterable[signal.Signals]) -> None:
        self._read, self._write = socket.socketpair()
        for one in (self._read, self._write):
            one.setblocking(False)  # noqa: FBT003  (the standard library's)
        signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        for signum in signums:
            signal.signal(signum, lambda _signum, _frame: None)

    def fileno(self) -> int:
        """Return what to poll."""
        return self._read.fileno()

    def take(self) -> set[int]:
        """Return the signals that have arrived since the last call."""
        return set(self._read.recv(_READ_BYTES))

    def close(self) -> None:
        """Take no more signals: for a fork that goes its own way."""
        signal.set_wakeup_fd(-1)
        self._read.close()
        self._write.close()
