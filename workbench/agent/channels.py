"""What shim and home share: pipes, the output log, and memory. Standard library only.

What the home prints goes through two pipes to the shim, which appends it to the log; displays and
results the home appends itself. So that both stay in order, the home waits, before it appends or
changes pipe, until the shim has appended all that is in the pipes (`Channels.settle`).

Flags and the home's last report stand in shared memory, which no cell closes by accident.
"""

from __future__ import annotations

import array
import mmap
import os
import termios
from collections.abc import Iterable
from dataclasses import dataclass
from fcntl import ioctl
from json import JSONDecodeError, JSONDecoder, JSONEncoder
from struct import Struct
from time import monotonic, sleep
from typing import Any, Final

from workbench.agent.output import OutputLog, identity
from workbench.engines.gate import Gate

SETTLE_LIMIT_S: Final = 0.5
_SETTLE_PAUSE_S: Final = 0.00005
STREAMS: Final = {1: "stdout", 2: "stderr"}
_SHARED_BYTES: Final = 16384
_REPORT_LENGTH: Final = Struct("<I")
_REPORT_AT: Final = 64
"""Where the report's length stands, and then the report; flags stand before."""
_encode: Final = JSONEncoder().encode


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
        self.streams = {target: Pipe.make() for target in STREAMS}
        self._identities = {target: identity(pipe.read) for target, pipe in self.streams.items()}
        self.crews: dict[bool, Gate] = {}
        """Where the workers wait that were started beside the home, by whether they have a GPU."""
        self._shared = mmap.mmap(-1, _SHARED_BYTES)  # With forks.

    # --- the shim's side ---

    def keep_shim_side(self) -> None:
        """Close what only the home needs."""
        for pipe in self.streams.values():
            os.close(pipe.write)
        for gate in self.crews.values():
            gate.close()

    def set_busy(self, target: int, *, busy: bool) -> None:
        """Say whether bytes taken from the pipe of `target` are not yet in the log."""
        self._shared[target] = busy

    def reported(self) -> dict[str, Any]:
        """Return what the home said of its end; nothing where it did not get so far."""
        (length,) = _REPORT_LENGTH.unpack_from(self._shared, _REPORT_AT)
        start = _REPORT_AT + _REPORT_LENGTH.size
        try:
            report = JSONDecoder().decode(self._shared[start : start + length].decode() or "{}")
        except (JSONDecodeError, UnicodeDecodeError):
            return {}
        return report if isinstance(report, dict) else {}

    # --- a worker's side ---

    def keep_nothing(self) -> None:
        """Close all pipes: a worker has no part in them."""
        for pipe in self.streams.values():
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
        for gate in self.crews.values():
            gate.keep_home_side()

    def report(self, **fields: str) -> None:
        """Tell the shim how the job ended; the last word counts.

        Args:
            fields: Together at most about 10,000 characters in JSON.
        """
        data = _encode(fields).encode()
        start = _REPORT_AT + _REPORT_LENGTH.size
        _REPORT_LENGTH.pack_into(self._shared, _REPORT_AT, 0)
        self._shared[start : start + len(data)] = data
        _REPORT_LENGTH.pack_into(self._shared, _REPORT_AT, len(data))

    def settle(self, targets: Iterable[int] = tuple(STREAMS)) -> None:
        """Wait until what was printed is in the log; at most `SETTLE_LIMIT_S`, then go on.

        Args:
            targets: The streams that must come first: 1, 2 or both.
        """
        limit: float | None = None
        while any(self._is_pending(target) for target in targets):
            limit = limit or monotonic() + SETTLE_LIMIT_S
            if monotonic() > limit:
                return
            sleep(_SETTLE_PAUSE_S)

    def _is_pending(self, target: int) -> bool:
        # In this order: the shim says that it is busy before it takes bytes out of the pipe.
        pipe = self.streams[target].read
        # A cell that has closed it goes on without: its own descriptor may have the number now.
        is_open = identity(pipe) == self._identities[target]
        return (is_open and _waiting(pipe) > 0) or self._shared[target] > 0


def _waiting(descriptor: int) -> int:
    """Bytes that wait in a pipe; either end may ask. Source: FIONREAD, ioctl_pipe(2)."""
    count = array.array("i", [0])
    ioctl(descriptor, termios.FIONREAD, count)
    return count[0]
