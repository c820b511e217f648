"""What a cell leaves running in its home, and what becomes of it when the home ends.

As where a Python program ends: threads and child processes that are no daemons are waited for, and
what was registered with `atexit` runs. Whatever else is left is ended by the shim, and named.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import io
import os
import sys
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final

from workbench.agent.process import read_stat

SAY_AFTER_S: Final = 2.0
TASKS_WAIT_S: Final = 5.0
"""A task that nobody awaits gets so long to end; the program's end would cancel it at once."""
_PAUSE_S: Final = 0.02
_NAMED: Final = 3
_POOLS: Final = ("concurrent.futures.thread", "concurrent.futures.process")


class Leftovers:
    """Make it before the cell begins: what is there then is not the cell's."""

    def __init__(self) -> None:
        # The zygote's own go; what is there at the end is the cell's. No public way does that.
        atexit._clear()  # noqa: SLF001
        self._threads = frozenset(threading.enumerate())

    def wait(self) -> None:
        """Wait for threads and processes that the cell started and that are no daemons."""
        self._close_pools()
        say_at = time.monotonic() + SAY_AFTER_S
        while left := self._left():
            if time.monotonic() > say_at:
                say_at = float("inf")
                names = _named([one.name for one in left])
                _say(f"the cell has started {names}, which it now waits for; interrupt it to stop")
            left[0].join(_PAUSE_S)

    def end(self) -> None:
        """Run what is registered for the exit, write out open files, name who is left."""
        mp_util = sys.modules.get("multiprocessing.util")
        if mp_util is not None:
            # It would wait for processes, and `wait` has.
            atexit.unregister(mp_util._exit_function)  # noqa: SLF001
        with contextlib.suppress(BaseException):  # Each error was printed; the exit goes on.
            atexit._run_exitfuncs()  # noqa: SLF001
        flush_open_files()
        left = [thread.name for thread in self._left_threads()] + _children()
        if left:
            _say(f"the cell has ended, and so has what it left running: {_named(left)}")

    def _left(self) -> Sequence[Any]:
        multiprocessing = sys.modules.get("multiprocessing")
        children = [] if multiprocessing is None else multiprocessing.active_children()
        return [*self._left_threads(), *(child for child in children if not child.daemon)]

    def _left_threads(self) -> list[threading.Thread]:
        me = threading.current_thread()
        return [
            thread
            for thread in threading.enumerate()
            if thread not in self._threads and thread is not me and not thread.daemon
        ]

    def _close_pools(self) -> None:
        """Have executors end their threads once these have nothing more to do."""
        for name in _POOLS:
            module = sys.modules.get(name)
            if module is not None and self._left():
                end = module._python_exit  # noqa: SLF001  (what Python itself calls at its end)
                threading.Thread(target=end, daemon=True).start()


async def wait_for_tasks() -> None:
    """Let the tasks of this loop that nobody has awaited run for a while; cancel and name them."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if not tasks:
        return
    _, left = await asyncio.wait(tasks, timeout=TASKS_WAIT_S)
    if left:
        names = _named([task.get_name() for task in left])
        _say(f"the cell has ended, and so has what nobody awaited: {names}")
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def flush_open_files() -> None:
    """Write out what was left in files that nobody closed; the process ends abruptly."""
    for thing in gc.get_objects():
        # Not isinstance, which asks the thing itself: it may answer with an error or a warning.
        if issubclass(type(thing), io.BufferedWriter | io.TextIOWrapper):
            with contextlib.suppress(Exception):  # A class of the user's own can raise anything.
                if not thing.closed:
                    thing.flush()


def _children() -> list[str]:
    """Return how the children of this process that still run are called."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            for pid in (task / "children").read_text(encoding="ascii").split():
                command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                stat = read_stat(int(pid))
                # multiprocessing's own servants end by themselves when nobody needs them.
                if stat is None or stat.is_zombie or _is_servant(command):
                    continue
                name = command[0].decode("utf-8", "replace").rpartition("/")[2]
                found.append(f"{name} (pid {pid})")
    return found


def _is_servant(command: Collection[bytes]) -> bool:
    return any(b"multiprocessing" in word for word in command)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):  # The cell has closed it.
        os.write(2, f"[{sentence}]\n".encode("utf-8", "replace"))
