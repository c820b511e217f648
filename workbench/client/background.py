"""The sync face: one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class Background:
    """Runs coroutines in a daemon thread, so that a notebook's own event loop is left alone."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="workbench-client", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _Result], *, timeout_s: float | None = None) -> _Result:
        """Run `work` to its end and return its result; KeyboardInterrupt cancels it.

        Raises:
            TimeoutError: It took longer than `timeout_s`; it is cancelled.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except BaseException:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Run `work` beside everything else; nobody waits for it."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Stop the loop; safe to call twice."""
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        if not self._loop.is_closed():
            self._loop.close()
