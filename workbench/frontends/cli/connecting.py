"""Connections for the length of one command."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from workbench.client import ControllerClient, NobodyListens


@asynccontextmanager
async def controller() -> AsyncIterator[ControllerClient]:
    """Connect to this user's controller.

    Raises:
        PeerError: It cannot be reached; nothing is started.
    """
    try:
        client = await ControllerClient.connect(start=False)
    except NobodyListens as error:
        if error.next_step:
            raise
        raise NobodyListens(
            f"your controller does not run: {error.message}",
            next_step="Start it with `workbench up`; the first scheduled cell does so too",
        ) from error
    try:
        yield client
    finally:
        await client.close()
