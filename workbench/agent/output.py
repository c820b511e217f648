"""Appends to a job's output.jsonl and rings the agent's doorbell. Standard library only.

Shim and home append to the same file, each line in one write, so that lines never mix. The
doorbell is a hint: the agent looks at the file's size, and looks by itself once a second.

A cell runs in the home too. Whatever it puts into `os` or `json`, what is needed here is bound
before; and where it closes our descriptors, what then has their numbers is not written to.
"""

from __future__ import annotations

import errno
import re
import socket
from json import JSONEncoder
from os import O_APPEND, O_CLOEXEC, O_CREAT, O_WRONLY, fspath
from os import fstat as _fstat
from os import open as _open
from os import write as _write
from pathlib import Path
from typing import Any, Final

from workbench.protocol.job_files import OUTPUT

DOORBELL: Final = "doorbell.sock"
"""The agent's datagram socket in the runtime directory; a datagram is JSON with `job`."""
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_as_json: Final = JSONEncoder(default=repr, ensure_ascii=False).encode


class OutputLog:
    """One job's output file, open for appending.

    Args:
        directory: The job directory.
        doorbell: The agent's datagram socket; nobody need listen there.
    """

    def __init__(self, directory: Path, doorbell: Path) -> None:
        self._path = fspath(directory / OUTPUT)
        self._doorbell = fspath(doorbell)
        self._job = directory.name
        self._torn = False
        self._lost = 0
        self._open_log()
        self._open_bell()

    def append(self, kind: str, **fields: Any) -> None:
        """Add one line and ring. On a full disk the line is dropped, and said so later."""
        line = _encode(kind, **fields)
        if self._lost:
            text = f"\n[{self._lost} pieces of output are lost: the disk was full]\n"
            line = _encode("stream", name="stderr", text=text) + line
        self._lost = 0 if self._write(line) else self._lost + 1
        self.ring()

    def ring(self, **news: Any) -> None:
        """Tell the agent to look; whether it listens or not."""
        if identity(self._bell.fileno()) != self._bell_identity:
            self._bell.detach()
            self._open_bell()
        try:
            self._bell.sendto(_as_json({"job": self._job, **news}).encode(), self._doorbell)
        except OSError:
            return

    def _write(self, line: bytes) -> bool:
        try:
            if self._torn:
                line = b"\n" + line
            if identity(self._log) != self._log_identity:
                self._open_log()
            written = _write(self._log, line)
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
                raise
            return False
        self._torn = written < len(line)
        return not self._torn

    def _open_log(self) -> None:
        self._log = _open(self._path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        self._log_identity = identity(self._log)

    def _open_bell(self) -> None:
        self._bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._bell_identity = identity(self._bell.fileno())


def identity(descriptor: int) -> tuple[int, int] | None:
    """Return what a descriptor stands for, as no other open file does; None where it is closed."""
    try:
        stat = _fstat(descriptor)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _encode(kind: str, **fields: Any) -> bytes:
    line = _as_json({"kind": kind, **fields})
    # A lone surrogate, which can only be within a text, is spelled out: no message carries it.
    return _SURROGATE.sub(lambda one: rf"\\u{ord(one[0]):x}", line).encode() + b"\n"
