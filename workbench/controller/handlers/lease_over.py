"""LeaseOver: nobody is left in a lease's tree; its GPUs are free once their memory is gone."""

from __future__ import annotations

from typing import Any, Final

from workbench.controller.lab import Lab, own_lease, uid_of
from workbench.core.model import LeaseId, Outcome
from workbench.protocol.messages import Done, LeaseOver
from workbench.transport.connection import Connection

DETAIL_LIMIT: Final = 500


async def lease_over(lab: Lab, connection: Connection[Any], message: LeaseOver) -> Done:
    """End the lease and answer when that is durable, so that the agent may forget it.

    Raises:
        NotYours: The lease is another user's.
    """
    job = own_lease(lab, uid_of(connection), message.lease)
    if job is not None:
        ending = message.ending
        await lab.releases.release(
            LeaseId(message.lease), Outcome(ending.outcome), ending.detail[:DETAIL_LIMIT]
        )
    return Done()
