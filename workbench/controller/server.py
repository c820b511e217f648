"""The socket's side: greet, hand each message to its handler, answer."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from workbench.controller.handlers import HANDLERS
from workbench.controller.handlers.hello import hello
from workbench.controller.lab import Lab
from workbench.controller.log import LOG
from workbench.core.errors import BugError, UserError, WorkbenchError
from workbench.protocol.failures import failure_of
from workbench.protocol.messages import Hello, Message
from workbench.transport.connection import Connection
from workbench.transport.errors import BrokenProtocol

GREETING_TIMEOUT_S: Final = 10.0
CLOSING_TIMEOUT_S: Final = 1.0
MOST_UNANSWERED: Final = 64
"""Requests of one connection that are worked on at once."""


class Server:
    """Serves connections of clients and agents.

    Args:
        lab: What the handlers act on.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._connections: set[Connection[Any]] = set()

    @property
    def connected(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    async def on_connection(self, connection: Connection[Any]) -> None:
        """Serve one connection to its end.

        Raises:
            ConnectionLost: The peer went away or broke the protocol (logged).
        """
        self._connections.add(connection)
        answering: set[asyncio.Task[None]] = set()
        room = asyncio.Semaphore(MOST_UNANSWERED)
        try:
            await self._greet(connection)
            while True:
                # A peer that reads no answers, or asks without end, is not listened to further.
                await room.acquire()
                await connection.drain()
                identity, message = await connection.receive()
                _check_place(identity, message)
                task = asyncio.create_task(self._answer(connection, identity, message))
                answering.add(task)
                task.add_done_callback(answering.discard)
                task.add_done_callback(lambda _: room.release())
        except BrokenProtocol as error:
            LOG.warning("uid %d pid %d: %s", connection.peer.uid, connection.peer.pid, error)
            raise
        finally:
            self._connections.discard(connection)
            for task in answering:
                task.cancel()
            self._lab.publisher.forget(connection)
            self._lab.agents.forget(connection)

    async def close(self) -> None:
        """Close every connection; what is already queued for a peer is still sent if it reads."""
        closing = [asyncio.create_task(connection.close()) for connection in self._connections]
        if closing:
            await asyncio.wait(closing, timeout=CLOSING_TIMEOUT_S)

    async def _greet(self, connection: Connection[Any]) -> None:
        """Exchange versions.

        Raises:
            ConnectionLost: The peer went away.
            BrokenProtocol: It did not greet, or in another version; of that it was told.
        """
        try:
            async with asyncio.timeout(GREETING_TIMEOUT_S):
                identity, message = await connection.receive()
        except TimeoutError as error:
            raise BrokenProtocol("the peer did not greet") from error
        if not isinstance(message, Hello):
            raise BrokenProtocol(f"{type(message).__name__} came before Hello")
        try:
            connection.send(identity, hello(self._lab, message))
        except UserError as error:
            connection.send(identity, failure_of(error))
            raise BrokenProtocol(str(error)) from error

    async def _answer(self, connection: Connection[Any], identity: int, message: Message) -> None:
        reply: Message
        try:
            reply = await HANDLERS[type(message)](self._lab, connection, message)
        except WorkbenchError as error:
            reply = failure_of(error)
        except Exception as error:  # noqa: BLE001 -- the top of a connection's loop
            LOG.exception("a bug in answering %s", type(message).__name__)
            reply = failure_of(BugError(f"the controller met a bug of its own: {error!r}"))
        connection.send(identity, reply)


def _check_place(identity: int, message: Message) -> None:
    if identity < 1 or isinstance(message, Hello):
        raise BrokenProtocol(f"{type(message).__name__} came out of place")
