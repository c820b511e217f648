"""What shim and home share: pipes, the output log, a flag, the last report. Standard library only.

What the home prints goes through two pipes to the shim, which appends it to the log; displays and
results the home appends itself. So that both stay in order, the home waits, before it appends or
changes pipe, until the shim has appended all that is in the pipes (`Channels.settle`).
"""

from __future__ import annotations

import array
import fcntl
import mmap
import os
import termios
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from workbench.agent.output import OutputLog
from workbench.engines.gate import Gate

SETTLE_LIMIT_S: Final = 0.5
_SETTLE_PAUSE_S: Final = 0.00005
STREAMS: Final = {1: "stdout", 2: "stderr"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipe:
    """A pipe's two descriptors."""

    read: int
    write: int

    @classmethod
    def make(cls) -> Pipe:
        """Open a new pipe that no exec'd program inherits."""
        read, write = os.pipe()
        return cls(read=read, write=write)


class Channels:
    """Made by the shim before it forks the home; both use it afterwards.

    Args:
        log: The job's output log.
    """

    def __init__(self, log: OutputLog) -> None:
        self.log = log
        self.report = Pipe.make()
        self.streams = {target: Pipe.make() for target in STREAMS}
        self.crews: dict[bool, Gate] = {}
        """Where the workers wait that were started beside the home, by whether they have a GPU."""
        self._busy = mmap.mmap(-1, mmap.PAGESIZE)  # Shared with forks.

    # --- the shim's side ---

    def keep_shim_side(self) -> None:
        """Close what only the home needs."""
        os.close(self.report.write)
        for pipe in self.streams.values():
            os.close(pipe.write)
        for gate in self.crews.values():
            gate.close()

    def set_busy(self, target: int, *, busy: bool) -> None:
        """Say whether bytes taken from the pipe of `target` are not yet in the log."""
        self._busy[target] = busy

    # --- a worker's side ---

    def keep_nothing(self) -> None:
        """Close all pipes: a worker has no part in them."""
        for pipe in (self.report, *self.streams.values()):
            os.close(pipe.read)
            os.close(pipe.write)

    # --- the home's side ---

    def keep_home_side(self) -> None:
        """Make the pipes the home's stdout and stderr; its stdin is empty."""
        for target, pipe in self.streams.items():
            os.dup2(pipe.write, target)
            os.close(pipe.write)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.close(self.report.read)
        for gate in self.crews.values():
            gate.keep_home_side()

    def settle(self, targets: Iterable[int] = tuple(STREAMS)) -> None:
        """Wait until what was printed is in the log; at most `SETTLE_LIMIT_S`, then go on.

        Args:
            targets: The streams that must come first: 1, 2 or both.
        """
        limit: float | None = None
        while any(self._is_pending(target) for target in targets):
            limit = limit or time.monotonic() + SETTLE_LIMIT_S
            if time.monotonic() > limit:
                return
            time.sleep(_SETTLE_PAUSE_S)

    def _is_pending(self, target: int) -> bool:
        # In this order: the shim says that it is busy before it takes bytes out of the pipe.
        return _waiting(self.streams[target].read) > 0 or self._busy[target] > 0


def _waiting(descriptor: int) -> int:
    """Bytes that wait in a pipe; either end may ask. Source: FIONREAD, ioctl_pipe(2)."""
    count = array.array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, count)
    return count[0]
