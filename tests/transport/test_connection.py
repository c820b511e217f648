from __future__ import annotations

import asyncio
import os
import stat
import struct
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from workbench.core.errors import BugError
from workbench.protocol.messages import (
    Advanced,
    Cancel,
    ControllerRequest,
    Done,
    GetStatus,
)
from workbench.transport.connection import (
    FRAME_LIMIT_BYTES,
    Connection,
    connect,
    frame_of,
    serve,
)
from workbench.transport.errors import (
    BadPlace,
    BrokenProtocol,
    ConnectionLost,
    NobodyListens,
    UntrustedPeer,
)

ME = (os.getuid(),)
Serving = Callable[[Connection[Any]], Awaitable[None]]


@pytest.fixture
def socket() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="wb-") as directory:
        yield Path(directory) / "one.sock"


async def until_closed(server: asyncio.Server) -> None:
    server.close()
    await server.wait_closed()


async def echo(connection: Connection[Any]) -> None:
    while True:
        connection.send(*await connection.receive())


async def test_a_message_arrives_whole_with_its_id_and_its_sender(socket: Path) -> None:
    peers = []

    async def serving(connection: Connection[Any]) -> None:
        peers.append(connection.peer)
        await echo(connection)

    server = await serve(socket, ControllerRequest, serving, mode=0o600)
    client = await connect(socket, ControllerRequest, trusted_uids=ME)
    for number in range(1, 4):
        client.send(number, Cancel(job="j" * number))
    assert [await client.receive() for _ in range(3)] == [
        (number, Cancel(job="j" * number)) for number in range(1, 4)
    ]
    [peer] = peers
    assert (peer.pid, peer.uid, peer.gid) == (os.getpid(), os.getuid(), os.getgid())
    assert client.peer.uid == os.getuid()
    await client.close()
    await client.close()
    await until_closed(server)


async def test_one_encoding_may_go_to_many(socket: Path) -> None:
    server = await serve(socket, ControllerRequest, echo, mode=0o600)
    client = await connect(socket, ControllerRequest, trusted_uids=ME)
    client.send_frame(frame_of(5, GetStatus()))
    assert await client.receive() == (5, GetStatus())
    await client.close()
    await until_closed(server)


async def test_a_lone_surrogate_in_a_message_is_spelled_out(socket: Path) -> None:
    server = await serve(socket, ControllerRequest, echo, mode=0o600)
    client = await connect(socket, ControllerRequest, trusted_uids=ME)
    client.send(5, Cancel(job="j", reason="bad\udcff.txt"))
    assert await client.receive() == (5, Cancel(job="j", reason="bad\\udcff.txt"))
    await client.close()
    await until_closed(server)


def test_a_number_that_no_message_can_hold_is_named() -> None:
    with pytest.raises(BugError, match="Advanced cannot be sent"):
        frame_of(1, Advanced(job="j", size_bytes=10**30))


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x00\x00\x00",
        struct.pack(">I", 3) + b"\xc1\xc1\xc1",
        struct.pack(">I", FRAME_LIMIT_BYTES + 1),
        frame_of(1, Done()),
        struct.pack(">I", 9) + msgspec.msgpack.encode([1, {"type": "X"}])[:9],
    ],
)
async def test_what_does_not_fit_breaks_the_connection(socket: Path, sent: bytes) -> None:
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def serving(connection: Connection[Any]) -> None:
        try:
            await connection.receive()
        except ConnectionLost as error:
            failed.set_result(error)
            raise

    server = await serve(socket, ControllerRequest, serving, mode=0o600)
    reader, writer = await asyncio.open_unix_connection(socket)
    writer.write(sent)
    assert isinstance(await failed, BrokenProtocol)
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    await until_closed(server)


async def test_half_a_frame_is_a_lost_peer(socket: Path) -> None:
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def serving(connection: Connection[Any]) -> None:
        try:
            await connection.receive()
        except ConnectionLost as error:
            failed.set_result(error)

    server = await serve(socket, ControllerRequest, serving, mode=0o600)
    _, writer = await asyncio.open_unix_connection(socket)
    writer.write(struct.pack(">I", 100) + b"half")
    writer.close()
    await writer.wait_closed()
    error = await failed
    assert not isinstance(error, BrokenProtocol)
    await until_closed(server)


async def test_a_message_to_a_peer_that_is_gone_is_dropped(socket: Path) -> None:
    server = await serve(socket, ControllerRequest, echo, mode=0o600)
    client = await connect(socket, ControllerRequest, trusted_uids=ME)
    await client.close()
    client.send(1, GetStatus())
    with pytest.raises(ConnectionLost):
        await client.receive()
    await until_closed(server)


async def test_what_a_peer_does_not_read_is_counted(socket: Path) -> None:
    proceed = asyncio.Event()

    async def serving(connection: Connection[Any]) -> None:
        await proceed.wait()
        await connection.receive()

    server = await serve(socket, ControllerRequest, serving, mode=0o600)
    client = await connect(socket, ControllerRequest, trusted_uids=ME)
    assert client.backlog_bytes == 0
    for number in range(20):
        client.send(number, Cancel(job="j" * 2**16))
    assert client.backlog_bytes > 2**16
    proceed.set()
    with pytest.raises(ConnectionLost):
        await client.drain()
    await client.close()
    await until_closed(server)


async def test_a_socket_has_its_mode_and_replaces_what_a_dead_server_left(socket: Path) -> None:
    for mode in (0o600, 0o666):
        server = await serve(socket, ControllerRequest, echo, mode=mode)
        assert stat.S_IMODE(socket.stat().st_mode) == mode
        await until_closed(server)
        assert socket.exists()
    with pytest.raises(NobodyListens):
        await connect(socket, ControllerRequest, trusted_uids=ME)


async def test_nobody_listens_where_there_is_no_socket(socket: Path) -> None:
    with pytest.raises(NobodyListens, match=str(socket)):
        await connect(socket, ControllerRequest, trusted_uids=ME)


async def test_a_server_of_a_user_who_is_not_trusted_is_not_spoken_to(socket: Path) -> None:
    server = await serve(socket, ControllerRequest, echo, mode=0o600)
    with pytest.raises(UntrustedPeer, match=f"served by uid {os.getuid()}"):
        await connect(socket, ControllerRequest, trusted_uids=(os.getuid() + 1,))
    await until_closed(server)


async def test_a_socket_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    with pytest.raises(BadPlace, match="no socket can be made"):
        await serve(tmp_path / "missing/one.sock", ControllerRequest, echo, mode=0o600)
