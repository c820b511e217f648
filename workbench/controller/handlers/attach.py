"""Attach: a user's agent says which leases it knows, and takes grants from now on."""

from __future__ import annotations

from functools import partial
from typing import Any

from workbench.controller.lab import Lab, uid_of
from workbench.controller.reconcile import reconcile
from workbench.core.events import AgentConnected
from workbench.protocol.messages import Attach, Done
from workbench.transport.connection import Connection


async def attach(lab: Lab, connection: Connection[Any], message: Attach) -> Done:
    """Make this connection the user's agent; settle what either side does not know.

    The newest connection is the agent: an older one is a leftover that is dying.
    """
    owner = uid_of(connection)
    lab.agents.attach(owner, connection)
    reconcile(lab, owner, message.leases)
    await lab.driver.note(partial(AgentConnected, owner=owner))
    lab.agents.resend()
    return Done()
