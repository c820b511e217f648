"""One watch of the controller, shared by all browsers of this Jupyter server.

The watch begins when the first browser asks, is taken up again with growing pauses while the
controller cannot be reached, and ends some time after the last browser has gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from logging import Logger
from typing import Final, Protocol

import msgspec

from workbench.client import BugError, ControllerClient, WorkbenchError
from workbench.frontends.server.errors import failure_from
from workbench.protocol.messages import Failure, Status

FLOOR_S: Final = 0.25
"""Browsers are never sent messages closer together than this."""
LINGER_S: Final = 30.0
"""The watch outlives the last reader by this, so that polling and page reloads share it."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0


class Controller(Protocol):
    """What the relay needs of `workbench.client.ControllerClient`."""

    def watch(self) -> AsyncIterator[Status]:
        """Yield the lab now and after each change; a slow reader gets the latest only."""

    async def cancel(self, job: str) -> None:
        """End a job of this user's."""

    async def close(self) -> None:
        """Close the connection."""


Connect = Callable[[], Awaitable[Controller]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What all browsers were last told.

    Attributes:
        number: Counts up with each publication.
        payload: The JSON of a `Status` or a `Failure`.
        error: Set where `payload` is a `Failure`.
    """

    number: int
    payload: bytes
    error: WorkbenchError | None


class Relay:
    """Reads the controller once and tells every browser.

    Args:
        connect: Opens a connection to the controller, starting it where need be.
        log: Gets one line when the controller is lost and one when it is found.
        floor_s: Least time between two publications.
        linger_s: How long the watch goes on without a reader.
        first_pause_s: Pause before the second attempt to connect; doubled up to 30 s.
    """

    def __init__(
        self,
        connect: Connect | None,
        log: Logger,
        *,
        floor_s: float = FLOOR_S,
        linger_s: float = LINGER_S,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        self._connect: Connect = connect or ControllerClient.connect
        self._log = log
        self._floor_s = floor_s
        self._linger_s = linger_s
        self._first_pause_s = first_pause_s
        self._readers = 0
        self._watching: asyncio.Task[None] | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._controller: Controller | None = None
        self._published: Published | None = None
        self._count = 0
        self._news = asyncio.Event()
        self._asked_again = asyncio.Event()

    async def follow(self) -> AsyncGenerator[bytes, None]:
        """Yield what browsers are told, now and after each change; a slow reader skips.

        A new follower cuts the pause before the next attempt to connect short.
        """
        with self._reading():
            self._asked_again.set()
            seen = 0
            while True:
                published = await self._newer_than(seen)
                seen = published.number
                yield published.payload

    async def latest(self) -> bytes:
        """Return the JSON of the latest `Status`, waiting for the first.

        Raises:
            WorkbenchError: The controller cannot be reached; the message says what to do.
        """
        with self._reading():
            published = await self._newer_than(0)
        if published.error is not None:
            raise published.error
        return published.payload

    async def cancel(self, job: str) -> None:
        """End a job of this user's.

        Raises:
            UserError: There is no such job, or it is another user's.
            PeerError: The controller cannot be reached.
        """
        with self._reading():
            await self.latest()
            if self._controller is None:
                raise BugError("a status was published without a connection to the controller")
            await self._controller.cancel(job)

    async def close(self) -> None:
        """End the watch now."""
        watching = self._watching
        self._end()
        if watching is not None:
            await asyncio.wait([watching])

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self._readers += 1
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="gpu-workbench watch")
        try:
            yield
        finally:
            self._readers -= 1
            if self._readers == 0:
                loop = asyncio.get_running_loop()
                self._ending = loop.call_later(self._linger_s, self._end)

    def _end(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
        watching = self._watching
        self._watching = self._ending = self._controller = self._published = None
        if watching is not None:
            watching.cancel()

    async def _newer_than(self, seen: int) -> Published:
        while self._published is None or self._published.number <= seen:
            await self._news.wait()
        return self._published

    async def _watch(self) -> None:
        pause_s = self._first_pause_s
        while True:
            before = self._count
            error = await self._watch_until_lost()
            if self._count > before:
                pause_s = self._first_pause_s
            self._publish_error(error)
            self._asked_again.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked_again.wait(), pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _watch_until_lost(self) -> Exception:
        controller = None
        try:
            self._controller = controller = await self._connect()
            async for status in controller.watch():
                self._publish_status(status)
                await asyncio.sleep(self._floor_s)
        except Exception as error:  # noqa: BLE001  the top of a driver's loop: told, then retried
            return error
        finally:
            if controller is not None:
                await controller.close()
        return BugError("the controller ended its watch without an error")

    def _publish_status(self, status: Status) -> None:
        if self._published is None or self._published.error is not None:
            self._log.info("GPU Workbench: the controller answers")
        self._publish(status, None)

    def _publish_error(self, error: Exception) -> None:
        failure = failure_from(error)
        known = error if isinstance(error, WorkbenchError) else None
        if self._published is None or self._published.error is None:
            self._log.warning("GPU Workbench: %s", error, exc_info=None if known else error)
        self._controller = None
        self._publish(failure, known or BugError(failure.message))

    def _publish(self, message: Status | Failure, error: WorkbenchError | None) -> None:
        self._count += 1
        self._published = Published(
            number=self._count, payload=msgspec.json.encode(message), error=error
        )
        self._news.set()
        self._news = asyncio.Event()
