"""Pickles what is nested more deeply than a thread's stack and the recursion limit allow.

The pickler calls itself for each level. A linked list of 100,000 nodes takes it 200,000 calls and
50 MB of stack; only what is touched of a stack takes memory. The unpickler does not call itself.

From Python 3.12 on the pickler's calls have a limit of their own, which is built in and which no
setting raises: 1,500 in 3.12.1, 10,000 in 3.13. What is nested more deeply is refused there.
"""

from __future__ import annotations

import contextlib
import contextvars
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

_STACKS_BYTES: Final = (4 << 30, 2 << 30, 1 << 30)
_BYTES_PER_RECURSION: Final = 8 << 10  # As Python has by default: no code needs more.
_HAS_FIXED_LIMIT: Final = sys.version_info >= (3, 12)
_FIT_ANY_STACK: Final = 10_000  # Recursions; where the user allows more, the stack may end first.


def dump(pickler: pickle.Pickler, thing: Any) -> None:
    """Has a pickler write a thing, however deeply the thing is nested.

    Raises:
        RecursionError: A deep stack is needed, see `dump_deeply`: the pickler's memo is spoilt.
    """
    if sys.getrecursionlimit() > _FIT_ANY_STACK:
        dump_deeply(pickler, thing)
    else:
        pickle.Pickler.dump(pickler, thing)


def dump_deeply(pickler: pickle.Pickler, *things: Any) -> None:
    """Has a pickler write things one after another, on a deep stack.

    Raises:
        RecursionError: They are nested more deeply than that stack or Python itself allows.
    """

    def work() -> None:
        for one in things:
            pickle.Pickler.dump(pickler, one)

    try:
        _on_a_deep_stack(work)
    except RecursionError as error:
        if not _HAS_FIXED_LIMIT:
            raise
        python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        raise RecursionError(
            f"{error}: {python} pickles only some thousand levels deep, "
            "whatever its recursion limit"
        ) from error


def _on_a_deep_stack(work: Callable[[], None]) -> None:
    """Does something in a thread of its own, and raises what it raises."""
    problems: list[BaseException] = []
    is_done = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as problem:  # noqa: BLE001  (raised below, in the caller's thread)
            problems.append(problem)
        finally:
            is_done.set()

    limit = sys.getrecursionlimit()  # It is every thread's, so it must not stay.
    try:
        thread = _start(run)
        _wait(is_done)
    finally:
        sys.setrecursionlimit(limit)
    thread.join()
    if problems:
        raise problems.pop()


def _start(run: Callable[[], None]) -> threading.Thread:
    """Starts a thread on the largest stack that there is room for."""
    before = threading.stack_size()
    try:
        for stack_bytes in _STACKS_BYTES:
            threading.stack_size(stack_bytes)
            sys.setrecursionlimit(stack_bytes // _BYTES_PER_RECURSION)
            thread = threading.Thread(target=contextvars.copy_context().run, args=(run,))
            with contextlib.suppress(RuntimeError):
                thread.start()
                return thread
    finally:
        threading.stack_size(before)
    raise RecursionError("it is nested deeply, and there is no room for a large stack")


def _wait(is_done: threading.Event) -> None:
    """Waits through interrupts, and raises the last: the work needs the limit until its end."""
    interrupt: BaseException | None = None
    while not is_done.is_set():
        try:
            is_done.wait()
        except BaseException as raised:  # noqa: BLE001  (whatever a signal's handler raises)
            interrupt = raised
    if interrupt is not None:
        raise interrupt
