"""The pipe at which workers wait until the home needs them. Standard library only.

The shim makes it before it forks. Each worker takes one byte and goes on, or reads the end of the
pipe (the home is gone, or never needed it) and ends. A worker keeps its end for life, so the home
sees when the last of them is gone.
"""

from __future__ import annotations

import contextlib
import os
from os import write as _write  # A cell may put anything into `os` before the home opens it.


class Gate:
    """One pipe for the workers of one kind.

    Args:
        count: How many workers stand before it.

    Attributes:
        pids: The processes that the shim forked to be these workers.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.pids: list[int] = []
        self._read, self._write = os.pipe()

    # --- the shim's side ---

    def close(self) -> None:
        """Close both ends: the shim neither waits nor opens."""
        os.close(self._read)
        os.close(self._write)

    # --- a worker's side ---

    def keep_worker_side(self) -> None:
        """Close what only the home needs."""
        os.close(self._write)

    def keep_across_exec(self) -> None:
        """Let the program that this process becomes hold the worker's end."""
        os.set_inheritable(self._read, True)  # noqa: FBT003  (the standard library's)

    def wait(self) -> bool:
        """Wait for the home; False where it will never ask."""
        return bool(os.read(self._read, 1))

    # --- the home's side ---

    def keep_home_side(self) -> None:
        """Close what only a worker needs."""
        os.close(self._read)

    def fileno(self) -> int:
        """Return the home's end: it shows an error when the last worker is gone."""
        return self._write

    def open(self) -> None:
        """Let every worker go on."""
        with contextlib.suppress(BrokenPipeError):  # They are gone; `is_deserted` says so.
            _write(self._write, bytes(self.count))
