"""What a channel does when its owner cannot take a push."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest

from workbench.protocol.messages import ControllerRequest, GetStatus, Message
from workbench.transport.channel import Channel
from workbench.transport.connection import Connection, connect, serve
from workbench.transport.errors import ConnectionLost

LIMIT_S = 20.0


class CannotTake(Exception):
    """What a test's own `on_push` raises."""


async def test_a_push_that_cannot_be_taken_fails_every_asker_and_leaves_nothing_open() -> None:
    is_closed = asyncio.Event()
    lost: list[ConnectionLost] = []

    async def serving(connection: Connection[Any]) -> None:
        await connection.receive()
        connection.send(0, GetStatus())
        try:
            await connection.receive()
        except ConnectionLost:
            is_closed.set()

    def refuse(_push: Message) -> None:
        raise CannotTake

    with tempfile.TemporaryDirectory(prefix="wb-") as directory:
        socket = Path(directory) / "one.sock"
        server = await serve(socket, ControllerRequest, serving, mode=0o600)
        connection = await connect(socket, ControllerRequest, trusted_uids=(socket.stat().st_uid,))
        channel = Channel(connection, on_push=refuse, on_lost=lost.append)
        async with asyncio.timeout(LIMIT_S):
            for _ in range(2):  # One waits already, one comes too late.
                with pytest.raises(ConnectionLost, match="CannotTake"):
                    await channel.ask(GetStatus())
            with pytest.raises(CannotTake):
                await channel.until_lost()
            assert channel.is_lost
            await channel.close()
            await is_closed.wait()
        assert lost == []
        server.close()
        await server.wait_closed()
