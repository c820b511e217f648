"""What does not fit the protocol is refused, has no effect, and harms nobody else."""

from __future__ import annotations

import asyncio
import os
import struct
from typing import get_args

import msgspec
import pytest

from tests.controller.running import PATIENCE_S, Peer, Place, Refused
from workbench.controller.handlers import HANDLERS
from workbench.protocol.messages import (
    PROTOCOL,
    Advanced,
    ControllerReply,
    ControllerRequest,
    GetStatus,
    Hello,
    Message,
    Warm,
)
from workbench.transport.connection import FRAME_LIMIT_BYTES, connect


def frame(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


def message(identity: object, body: object) -> bytes:
    return frame(msgspec.msgpack.encode((identity, body)))


HELLO = message(1, Hello(protocol=PROTOCOL, software="test"))
STATUS = message(2, GetStatus())

BROKEN = {
    "no message at all": b"\x00\x00\x00\x00",
    "not msgpack": frame(b"\xc1\xc1\xc1"),
    "no tag": message(2, {}),
    "another tag": message(2, {"type": "DropTables"}),
    "a message of the agent's socket": message(2, Warm(session="s", modules=[])),
    "a push of the agent's": message(2, Advanced(job="j", size_bytes=1)),
    "no id": frame(msgspec.msgpack.encode([GetStatus()])),
    "a push from a client": message(0, GetStatus()),
    "a negative id": message(-1, GetStatus()),
    "an id that is text": message("2", GetStatus()),
    "a field of another type": message(2, {"type": "Cancel", "job": 7}),
    "a field that is missing": message(2, {"type": "Cancel"}),
    "a value that is not in the set": message(
        2, {"type": "Submit", "job": "a" * 32, "name": "x", "request": {"kind": "virus"}}
    ),
    "a number that is no number": message(
        2,
        {
            "type": "Submit",
            "job": "a" * 32,
            "name": "x",
            "request": {"kind": "cell", "gpus": 1.5},
        },
    ),
    "a frame that is too long": struct.pack(">I", FRAME_LIMIT_BYTES + 1),
    "half a frame": struct.pack(">I", 100) + b"half",
    "a second greeting": HELLO,
    "text for another server": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


async def exchange(place: Place, sent: bytes) -> bytes:
    """Everything that the controller answers until it closes."""
    reader, writer = await asyncio.open_unix_connection(place.socket)
    writer.write(sent)
    writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    await writer.wait_closed()
    return answer


async def test_a_broken_message_ends_its_connection_and_nothing_else(place: Place) -> None:
    await place.start()
    bystander = await place.peer()
    welcome = await exchange(place, HELLO)
    for what, sent in BROKEN.items():
        assert len(await exchange(place, HELLO + sent)) == len(welcome), what
        assert await exchange(place, sent) in {b"", welcome}, what
    status = await bystander.status()
    assert (status.jobs, status.ended) == ([], [])
    assert place.process.poll() is None
    assert "Traceback" not in place.log


async def test_a_message_before_the_greeting_is_not_answered(place: Place) -> None:
    await place.start()
    assert await exchange(place, STATUS) == b""
    assert await exchange(place, HELLO + STATUS) != b""


async def test_another_protocol_is_refused_with_both_numbers_and_the_remedy(place: Place) -> None:
    await place.start()
    connection = await connect(place.socket, ControllerReply, trusted_uids=(os.getuid(),))
    peer = Peer(connection, place.socket)
    with pytest.raises(Refused) as refused:
        await peer.ask(Hello(protocol=PROTOCOL + 41, software="9.9"))
    failure = refused.value.failure
    assert (failure.fault, failure.error) == ("user", "ProtocolMismatch")
    assert f"protocol {PROTOCOL}, " in failure.message
    assert f"speak {PROTOCOL + 41}" in failure.message
    assert "pip install -U gpu-workbench" in failure.next_step
    assert "workbench down" in failure.next_step
    await peer.lost()
    await peer.close()


async def test_many_requests_at_once_are_each_answered(place: Place) -> None:
    await place.start()
    peer = await place.peer()
    jobs = await asyncio.gather(*(peer.submit(cores=1, name=str(n)) for n in range(200)))
    status = await peer.status()
    assert [view.id for view in status.jobs] == list(jobs)
    assert [view.name for view in status.jobs] == [str(n) for n in range(200)]


async def test_a_client_that_dies_in_the_middle_leaves_its_job_queued(place: Place) -> None:
    await place.start()
    client, bystander = await place.peer(), await place.peer()
    job = await client.submit()
    client.connection.send(99, GetStatus())
    await client.close()
    assert (await bystander.job(job)).state == "queued"


def test_every_request_has_a_handler() -> None:
    requests: set[type[Message]] = set(get_args(ControllerRequest))
    assert set(HANDLERS) | {Hello} == requests
