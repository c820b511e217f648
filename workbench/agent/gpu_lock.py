"""Host-wide locks on GPUs: one holder a card, whichever controllers run. Standard library only.

The lock is an abstract Unix socket that the shim binds and listens on. Forked descendants keep the
descriptor, so the name is free only when the last of them is gone; nothing is left behind by a
killed process.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Final

_CREDENTIALS: Final = struct.Struct("iII")
_ASK_TIMEOUT: Final = struct.pack("ll", 0, 500_000)
"""Half a second. A full queue makes connect wait so long, where a Python timeout would fail."""


class GpuHeldOutside(Exception):
    """Another process holds the card.

    Args:
        uuid: The card.
        uid: Who holds it; None where the holder did not answer.
    """

    def __init__(self, uuid: str, uid: int | None) -> None:
        holder = "a process that does not answer" if uid is None else f"uid {uid}"
        super().__init__(f"GPU {uuid} is held outside by {holder}")
        self.uid = uid


def hold(uuid: str) -> socket.socket:
    """Take the lock of one GPU and return the socket that is the lock.

    Raises:
        GpuHeldOutside: Another process has it.
    """
    name = f"\0gpu-workbench/{uuid}"
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        lock.bind(name)
    except OSError as error:
        lock.close()
        raise GpuHeldOutside(uuid, _holder(name)) from error
    lock.listen()
    lock.setblocking(False)  # noqa: FBT003  (the standard library's)
    return lock


def answer(lock: socket.socket) -> None:
    """Let go whoever connected to read the holder's uid, so that the queue never fills."""
    with contextlib.suppress(BlockingIOError):
        while True:
            lock.accept()[0].close()


def _holder(name: str) -> int | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker, contextlib.suppress(OSError):
        asker.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _ASK_TIMEOUT)
        asker.connect(name)
        raw = asker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        uid: int = _CREDENTIALS.unpack(raw)[1]
        return uid
    return None
