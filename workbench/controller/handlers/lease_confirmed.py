"""LeaseConfirmed: the agent started a lease's job."""

from __future__ import annotations

from functools import partial
from typing import Any

from workbench.controller.lab import Lab, own_lease, uid_of
from workbench.core.events import LeaseStarted
from workbench.core.model import JobState, LeaseId
from workbench.protocol.messages import Done, LeaseConfirmed
from workbench.transport.connection import Connection


async def lease_confirmed(lab: Lab, connection: Connection[Any], message: LeaseConfirmed) -> Done:
    """Note that the job runs; a second confirmation changes nothing.

    Raises:
        NotYours: The lease is another user's.
    """
    job = own_lease(lab, uid_of(connection), message.lease)
    if job is not None and job.state is JobState.STARTING:
        await lab.driver.note(partial(LeaseStarted, lease=LeaseId(message.lease)))
    return Done()
