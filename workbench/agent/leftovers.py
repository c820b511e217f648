"""What a cell leaves running in its home, and what becomes of it when the home ends.

As where a Python program ends: what libraries have registered to end their threads runs, threads
and child processes that are no daemons are waited for, and what was registered with `atexit` runs.
Unlike there, the wait ends some day. Whatever else is left is ended by the shim, and named.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import io
import logging
import os
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Final

from workbench.agent.process import read_stat

SAY_AFTER_S: Final = 2.0
WAIT_LIMIT_S: Final = 600.0
"""A thread may write a large file to its end; one that never ends must not hold the lease."""
TASKS_WAIT_S: Final = 5.0
"""A task that nobody awaits gets so long to end; the program's end would cancel it at once."""
_PAUSE_S: Final = 0.02
_unregister: Final = atexit.unregister
_run_exit_functions: Final = atexit._run_exitfuncs  # noqa: SLF001  (a cell may patch it)
_NAMED: Final = 3
_SERVANTS: Final = (b"multiprocessing", b"resource_tracker")
"""What the commands of multiprocessing's and loky's own servants have in them."""
_UP_TO: Final = f"for up to {WAIT_LIMIT_S / 60:g} minutes; interrupt it to stop"


class Leftovers:
    """Make it before the cell begins: what is there then is not the cell's."""

    def __init__(self) -> None:
        # The zygote's own go; what is there at the end is the cell's. No public way does that.
        atexit._clear()  # noqa: SLF001
        self._threads = frozenset(threading.enumerate())

    def wait(self) -> None:
        """Wait for threads and processes that the cell started and that are no daemons."""
        if not self._left():
            return
        began = monotonic()
        _in_background(_end_threads)
        is_said = self._join(self._left_threads, began)
        if self._left_processes():
            _in_background(_end_processes)
            self._join(self._left_processes, began, is_said=is_said)

    @staticmethod
    def run_exit_functions() -> None:
        """Run what is registered for the exit; it takes as long as that takes."""
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            # What it does comes last: most import it before they register anything.
            _unregister(util._exit_function)  # noqa: SLF001
        with contextlib.suppress(BaseException):  # Each error was printed; the exit goes on.
            _run_exit_functions()
        if util is not None:
            with contextlib.suppress(BaseException):
                util._exit_function(active_children=_daemons)  # noqa: SLF001

    def end(self) -> None:
        """Write out open files, name who is left."""
        with contextlib.suppress(Exception):  # A handler of the user's own can raise anything.
            logging.shutdown()
        flush_open_files()
        left = [thread.name for thread in self._left_threads()] + _children()
        if left:
            _say(f"the cell has ended, and so has what it left running: {_named(left)}")

    def _join(
        self, find: Callable[[], Sequence[Any]], began: float, *, is_said: bool = False
    ) -> bool:
        """Wait for what `find` returns; whether it has been said by then who is waited for."""
        while (left := find()) and monotonic() < began + WAIT_LIMIT_S:
            if not is_said and monotonic() > began + SAY_AFTER_S:
                is_said = True
                names = _named([one.name for one in self._left()])
                _say(f"the cell has started {names}, which it now waits for, {_UP_TO}")
            left[0].join(_PAUSE_S)
        return is_said

    def _left(self) -> Sequence[Any]:
        return [*self._left_threads(), *self._left_processes()]

    def _left_threads(self) -> list[threading.Thread]:
        me = threading.current_thread()
        return [
            thread
            for thread in threading.enumerate()
            if thread not in self._threads and thread is not me and not thread.daemon
        ]

    @staticmethod
    def _left_processes() -> list[Any]:
        multiprocessing = sys.modules.get("multiprocessing")
        children = [] if multiprocessing is None else multiprocessing.active_children()
        return [child for child in children if not child.daemon]


class ExitLimit:
    """Bounds what runs at a cell's exit: it is named after a while, and ended in the end.

    Args:
        end: Ends this process, from another thread.
    """

    def __init__(self, end: Callable[[], Any]) -> None:
        self._end = end
        self._is_over = threading.Event()
        _in_background(self._watch)

    def over(self) -> None:
        """Say that it is over."""
        self._is_over.set()

    def _watch(self) -> None:
        what = "what the cell has registered for its exit"
        if self._is_over.wait(SAY_AFTER_S):
            return
        _say(f"{what} runs now, {_UP_TO}")
        if not self._is_over.wait(WAIT_LIMIT_S):
            _say(f"{what} did not end, and was ended")
            self._end()


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


def _end_threads() -> None:
    """Call what executors, of Python's own and of others, ask to be called before the join."""
    for call in reversed(threading._threading_atexits):  # type: ignore[attr-defined]  # noqa: SLF001
        call()


def _end_processes() -> None:
    """Have pools and managers end their processes, as multiprocessing does before it joins them."""
    sys.modules["multiprocessing.util"]._run_finalizers(0)  # noqa: SLF001


def _daemons() -> list[Any]:
    """Return those children that multiprocessing ends at the exit; `wait` waited for the others."""
    children = sys.modules["multiprocessing.process"].active_children()
    return [child for child in children if child.daemon]


def _in_background(call: Callable[[], None]) -> None:
    threading.Thread(target=call, daemon=True).start()


def _children() -> list[str]:
    """Return how the children of this process that still run are called."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            for pid in (task / "children").read_text(encoding="ascii").split():
                command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                stat = read_stat(int(pid))
                # Servants end by themselves when nobody needs them.
                if stat is None or stat.is_zombie or _is_servant(command):
                    continue
                name = command[0].decode("utf-8", "replace").rpartition("/")[2]
                found.append(f"{name} (pid {pid})")
    return found


def _is_servant(command: Collection[bytes]) -> bool:
    return any(servant in word for word in command for servant in _SERVANTS)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):  # The cell has closed it.
        os.write(2, f"[{sentence}]\n".encode("utf-8", "replace"))
