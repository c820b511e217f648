"""Questions, answers and pushes over one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from workbench import __version__
from workbench.core.errors import BugError
from workbench.protocol.failures import error_of
from workbench.protocol.messages import PROTOCOL, Failure, Hello, Message, Welcome
from workbench.transport.connection import Connection
from workbench.transport.errors import ConnectionLost


class Channel:
    """Sends requests, hands each reply to its asker and each push to `on_push`.

    Args:
        connection: An open connection; the channel closes it.
        on_push: Called on the event loop with each push, in order.
        on_lost: Called once when the peer goes away without having been asked to.
    """

    def __init__(
        self,
        connection: Connection[Any],
        *,
        on_push: Callable[[Message], None],
        on_lost: Callable[[ConnectionLost], None],
    ) -> None:
        self._connection = connection
        self._on_push = on_push
        self._on_lost = on_lost
        self._askers: dict[int, asyncio.Future[Message]] = {}
        self._last_id = 0
        self._lost: ConnectionLost | None = None
        self._reading = asyncio.create_task(self._read())

    @property
    def is_lost(self) -> bool:
        """Whether the peer is gone; a lost channel stays lost."""
        return self._lost is not None

    async def greet(self) -> Welcome:
        """Exchange versions.

        Raises:
            PeerError: The peer speaks another protocol; the message gives both numbers.
        """
        hello = Hello(protocol=PROTOCOL, software=__version__)
        welcome = await self.ask(hello)
        if not isinstance(welcome, Welcome):
            raise BugError(f"the greeting was answered with {type(welcome).__name__}")
        return welcome

    async def ask(self, request: Message) -> Message:
        """Send `request` and return its reply.

        Raises:
            UserError, PeerError, BugError: What the peer answered.
            ConnectionLost: It went away first; whether the request was carried out is unknown.
        """
        if self._lost is not None:
            raise self._lost
        self._last_id += 1
        asker: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._askers[self._last_id] = asker
        self._connection.send(self._last_id, request)
        reply = await asker
        if isinstance(reply, Failure):
            raise error_of(reply)
        return reply

    async def until_lost(self) -> None:
        """Wait until the peer goes away; what `on_push` raised comes out here."""
        await asyncio.shield(self._reading)

    async def close(self) -> None:
        """Close the connection; nothing is reported as lost."""
        self._reading.cancel()
        await asyncio.wait([self._reading])
        self._fail(ConnectionLost("the connection was closed here"))
        await self._connection.close()

    async def _read(self) -> None:
        try:
            while True:
                identity, body = await self._connection.receive()
                if identity == 0:
                    self._on_push(body)
                elif (asker := self._askers.pop(identity, None)) is not None and not asker.done():
                    asker.set_result(body)
        except ConnectionLost as error:
            self._fail(error)
            self._on_lost(error)
        except Exception as error:
            self._fail(ConnectionLost(f"a push could not be taken: {error!r}"))
            raise

    def _fail(self, error: ConnectionLost) -> None:
        self._lost = error
        askers, self._askers = self._askers, {}
        for asker in askers.values():
            if not asker.done():
                asker.set_exception(error)
