"""Where launcher and agent say what went wrong. Standard library only."""

from __future__ import annotations

import os
from typing import Final

from workbench.transport.paths import state_directory

LOG: Final = "agent.log"
LIMIT_BYTES: Final = 2**20


def write_to_log() -> None:
    """Send stdout and stderr to agent.log: whoever started us waits for our first words only."""
    path = state_directory() / LOG
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    if path.exists() and path.stat().st_size > LIMIT_BYTES:
        flags |= os.O_TRUNC
    descriptor = os.open(path, flags, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
