"""The controller as a client sees it: submit, cancel, status, watch."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from typing import Self, TypeVar

from workbench.client.stopped import Stopped, is_stopped
from workbench.core.errors import BugError, PeerError
from workbench.protocol.messages import (
    Cancel,
    ControllerReply,
    Done,
    GetStatus,
    Message,
    RequestSpec,
    Status,
    Submit,
    Watch,
)
from workbench.transport.channel import Channel
from workbench.transport.connection import Connection, connect
from workbench.transport.errors import ConnectionLost, NobodyListens
from workbench.transport.paths import ControllerPlace, controller_place
from workbench.transport.start import ensure_running

START_TIMEOUT_S = 15.0

_Reply = TypeVar("_Reply", bound=Message)


class ControllerClient:
    """One connection to the controller that this user belongs to. Make it with `connect`."""

    def __init__(self, connection: Connection[ControllerReply], place: ControllerPlace) -> None:
        self.place = place
        self._status: Status | None = None
        self._changed = asyncio.Condition()
        self._lost: ConnectionLost | None = None
        self._notifying: set[asyncio.Task[None]] = set()
        self._channel = Channel(connection, on_push=self._on_push, on_lost=self._on_lost)

    @classmethod
    async def connect(cls, *, start: bool = True) -> Self:
        """Connect to the user's controller, starting an embedded one where none is named.

        Args:
            start: False to never start one.

        Raises:
            NobodyListens: None is there and none may be started; the message says which.
            Stopped: The user has stopped it and asked for nothing since.
            UntrustedPeer: Somebody else serves the socket.
            PeerError: It does not come up, or speaks another protocol.
        """
        place = controller_place()
        try:
            connection = await _open(place)
        except NobodyListens as error:
            if place.lab:
                raise NobodyListens(
                    f"the lab's controller, named by {place.named_by}, does not answer on "
                    f"{place.socket}",
                    next_step="Tell whoever keeps this host; your running jobs go on",
                ) from error
            if not start:
                raise
            if is_stopped():
                raise Stopped("controller") from error
            await start_embedded(place)
            connection = await _open(place)
        client = cls(connection, place)
        try:
            await client._channel.greet()
        except BaseException:
            await client.close()
            raise
        return client

    @property
    def is_lost(self) -> bool:
        """Whether the controller is gone; connect again."""
        return self._channel.is_lost

    async def submit(
        self, job: str, request: RequestSpec, *, name: str, notebook: str | None
    ) -> None:
        """Queue a staged job. Safe to repeat with the same id.

        Raises:
            NeverFits: The request is larger than this host; nothing was queued.
            UserError: The request is not well formed; nothing was queued.
        """
        await self._ask(Submit(job=job, request=request, name=name, notebook=notebook), Done)

    async def cancel(self, job: str, reason: str = "cancelled by its owner") -> None:
        """End a job of this user's.

        Raises:
            UserError: There is no such job, or it is another user's.
        """
        await self._ask(Cancel(job=job, reason=reason), Done)

    async def status(self) -> Status:
        """Return the lab now."""
        return await self._ask(GetStatus(), Status)

    async def watch(self, job: str | None = None) -> AsyncGenerator[Status, None]:
        """Yield the lab now and then the latest state after each change; slow readers skip.

        Raises:
            ConnectionLost: The controller went away.
        """
        yield await self._ask(Watch(job=job), Status)
        seen: Status | None = None
        while True:
            async with self._changed:
                while self._status is seen and self._lost is None:
                    await self._changed.wait()
            if self._lost is not None:
                raise self._lost
            seen = self._status
            if seen is not None:
                yield seen

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()

    async def _ask(self, request: Message, kind: type[_Reply]) -> _Reply:
        reply = await self._channel.ask(request)
        if not isinstance(reply, kind):
            raise BugError(f"{type(request).__name__} was answered with {type(reply).__name__}")
        return reply

    def _on_push(self, message: Message) -> None:
        if isinstance(message, Status):
            self._status = message
            self._notify()

    def _on_lost(self, error: ConnectionLost) -> None:
        self._lost = error
        self._notify()

    def _notify(self) -> None:
        task = asyncio.get_running_loop().create_task(self._notify_all())
        self._notifying.add(task)
        task.add_done_callback(self._notifying.discard)

    async def _notify_all(self) -> None:
        async with self._changed:
            self._changed.notify_all()


async def _open(place: ControllerPlace) -> Connection[ControllerReply]:
    return await connect(place.socket, ControllerReply, trusted_uids=place.trusted_uids)


async def start_embedded(place: ControllerPlace, *arguments: str) -> None:
    """Start this user's own controller and wait until it listens.

    Args:
        place: The user's own.
        arguments: More options of `python -m workbench.controller`.

    Raises:
        PeerError: It did not come up; the message ends with what it said.
    """
    argv = [sys.executable, "-m", "workbench.controller", "--embedded", *arguments]
    await asyncio.to_thread(
        ensure_running,
        place.socket,
        place.socket.with_suffix(".start"),
        argv,
        timeout_s=START_TIMEOUT_S,
    )


__all__ = ["ControllerClient", "PeerError", "start_embedded"]
