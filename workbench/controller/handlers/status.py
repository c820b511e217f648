"""GetStatus: the lab now."""

from __future__ import annotations

from typing import Any

from workbench.controller.lab import Lab, uid_of
from workbench.protocol.messages import GetStatus, Status
from workbench.transport.connection import Connection


async def status(lab: Lab, connection: Connection[Any], message: GetStatus) -> Status:  # noqa: ARG001 -- every handler is called alike
    """Return the lab as the sender may see it."""
    return lab.publisher.picture().status_for(uid_of(connection))
