"""Appends to a job's output.jsonl and rings the agent's doorbell. Standard library only.

Shim and home append to the same file, each line in one write, so that lines never mix. The
doorbell is a hint: the agent looks at the file's size, and looks by itself once a second.
"""

from __future__ import annotations

import errno
import json
import os
import re
import socket
from pathlib import Path
from typing import Any, Final

from workbench.protocol.job_files import OUTPUT

DOORBELL: Final = "doorbell.sock"
"""The agent's datagram socket in the runtime directory; a datagram is JSON with `job`."""
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


class OutputLog:
    """One job's output file, open for appending.

    Args:
        directory: The job directory.
        doorbell: The agent's datagram socket; nobody need listen there.
    """

    def __init__(self, directory: Path, doorbell: Path) -> None:
        self._descriptor = os.open(
            directory / OUTPUT, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        self._bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._doorbell = os.fspath(doorbell)
        self._job = directory.name
        self._torn = False
        self._lost = 0

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
        try:
            self._bell.sendto(json.dumps({"job": self._job, **news}).encode(), self._doorbell)
        except OSError:
            return

    def _write(self, line: bytes) -> bool:
        try:
            if self._torn:
                line = b"\n" + line
            written = os.write(self._descriptor, line)
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
                raise
            return False
        self._torn = written < len(line)
        return not self._torn


def _encode(kind: str, **fields: Any) -> bytes:
    line = json.dumps({"kind": kind, **fields}, default=repr, ensure_ascii=False)
    # A lone surrogate, which can only be within a text, is spelled out: no message carries it.
    return _SURROGATE.sub(lambda one: rf"\\u{ord(one[0]):x}", line).encode() + b"\n"
