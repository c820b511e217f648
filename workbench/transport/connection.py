"""Framed messages over a Unix socket, with the peer's identity.

A frame is a four-byte big-endian length and that many bytes of msgpack `[id, body]`.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from workbench.core.errors import BugError
from workbench.protocol.messages import Message
from workbench.protocol.text import plain
from workbench.transport.errors import (
    BadPlace,
    BrokenProtocol,
    ConnectionLost,
    NobodyListens,
    UntrustedPeer,
)

Incoming = TypeVar("Incoming", bound=Message)

FRAME_LIMIT_BYTES: Final = 32 * 2**20
_LENGTH: Final = struct.Struct(">I")
_CREDENTIALS: Final = struct.Struct("iII")
_ENCODER: Final = msgspec.msgpack.Encoder()
NOBODY_UID: Final = 65534
"""The uid that Linux shows for a peer whom the user namespace cannot map (user_namespaces(7))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Who is at the other end, as the kernel saw it at connect time (SO_PEERCRED, unix(7))."""

    pid: int
    uid: int
    gid: int


class Connection(Generic[Incoming]):
    """One end of a framed connection.

    Args:
        incoming: The union of messages that may arrive; anything else raises `BrokenProtocol`.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        incoming: object,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder: msgspec.msgpack.Decoder[tuple[int, Incoming]] = msgspec.msgpack.Decoder(
            tuple[int, incoming]  # type: ignore[valid-type]
        )
        self.peer = _peer_of(writer)

    async def receive(self) -> tuple[int, Incoming]:
        """Return the next `(id, body)`.

        Raises:
            ConnectionLost: The peer closed.
            BrokenProtocol: It sent what does not fit the protocol.
        """
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            if length > FRAME_LIMIT_BYTES:
                raise BrokenProtocol(
                    f"the peer announced a frame of {length} bytes, the limit is "
                    f"{FRAME_LIMIT_BYTES}"
                )
            return self._decoder.decode(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, OSError) as error:
            raise ConnectionLost("the peer closed the connection") from error
        except msgspec.MsgspecError as error:
            raise BrokenProtocol(f"the peer sent a message that does not fit: {error}") from error

    def send(self, identity: int, body: Message) -> None:
        """Queue a message without waiting; one to a closed peer is dropped."""
        self.send_frame(frame_of(identity, body))

    def send_frame(self, frame: bytes) -> None:
        """Queue what `frame_of` made, so that many peers can be sent one encoding."""
        if not self._writer.is_closing():
            self._writer.write(frame)

    @property
    def backlog_bytes(self) -> int:
        """Bytes queued for a peer that does not read; a driver drops pushes above its limit."""
        return self._writer.transport.get_write_buffer_size()

    async def drain(self) -> None:
        """Wait until the peer has taken most of what is queued."""
        try:
            await self._writer.drain()
        except OSError as error:
            raise ConnectionLost("the peer closed the connection") from error

    async def close(self) -> None:
        """Send what is queued and close; safe to call twice."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            return


def frame_of(identity: int, body: Message) -> bytes:
    """Return the frame of one message, length first; a lone surrogate in it is spelled out.

    Raises:
        BugError: It holds what no message can, such as a number of more than 64 bits.
    """
    try:
        payload = _ENCODER.encode((identity, body))
    except UnicodeEncodeError:
        payload = _ENCODER.encode((identity, _plain(msgspec.to_builtins(body))))
    except (OverflowError, TypeError, ValueError) as error:
        raise BugError(f"{type(body).__name__} cannot be sent: {error}") from error
    return _LENGTH.pack(len(payload)) + payload


def _plain(value: Any) -> Any:
    """Return builtins in which every text is UTF-8."""
    match value:
        case str():
            return plain(value)
        case dict():
            return {_plain(key): _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case _:
            return value


def _peer_of(writer: asyncio.StreamWriter) -> Peer:
    raw: socket.socket = writer.get_extra_info("socket")
    pid, uid, gid = _CREDENTIALS.unpack(
        raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return Peer(pid=pid, uid=uid, gid=gid)


async def connect(
    path: Path, incoming: object, *, trusted_uids: tuple[int, ...]
) -> Connection[Any]:
    """Connect to the socket at `path`.

    Raises:
        NobodyListens: There is no socket, or its server is gone.
        UntrustedPeer: The server's uid is none of `trusted_uids`.
        BadPlace: This user may not connect.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise NobodyListens(f"nothing listens on {path}") from error
    except PermissionError as error:
        raise BadPlace(
            f"you may not connect to {path}: {error.strerror}",
            next_step="Ask whoever keeps this host to open the socket to you",
        ) from error
    connection: Connection[Any] = Connection(reader, writer, incoming)
    if connection.peer.uid not in trusted_uids:
        await connection.close()
        raise UntrustedPeer(
            f"{path} is served by uid {connection.peer.uid}, trusted are {trusted_uids}",
            next_step="Remove the socket, or name its uid as controller_uid in the configuration",
        )
    return connection


async def serve(
    path: Path,
    incoming: object,
    on_connection: Callable[[Connection[Any]], Awaitable[None]],
    *,
    mode: int,
) -> asyncio.Server:
    """Listen on `path` with file mode `mode`; each connection runs `on_connection` to its end.

    A peer whom the kernel cannot map (uid 65534) is closed without an answer. A stale socket file
    is replaced: the caller holds the lock that says that nobody else serves here.

    Raises:
        BadPlace: The socket cannot be made there.
    """

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection: Connection[Any] = Connection(reader, writer, incoming)
        try:
            if connection.peer.uid != NOBODY_UID:
                await on_connection(connection)
        except ConnectionLost:
            return
        finally:
            await connection.close()

    try:
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(accepted, path)
        path.chmod(mode)
    except OSError as error:
        raise BadPlace(
            f"no socket can be made at {path}: {error.strerror}",
            next_step="Make its directory writable, or set XDG_RUNTIME_DIR to another one",
        ) from error
    return server
