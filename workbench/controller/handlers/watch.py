"""Watch: the lab now, and again whenever it changes."""

from __future__ import annotations

from typing import Any

from workbench.controller.lab import Lab
from workbench.protocol.messages import Status, Watch
from workbench.transport.connection import Connection


async def watch(lab: Lab, connection: Connection[Any], message: Watch) -> Status:
    """Push from now on, and return the lab as the sender may see it."""
    return lab.publisher.watch(connection, message.job)
