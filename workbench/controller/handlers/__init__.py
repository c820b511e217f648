"""One file a verb. The table says which handler answers which message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from workbench.controller.handlers.attach import attach
from workbench.controller.handlers.cancel import cancel
from workbench.controller.handlers.lease_confirmed import lease_confirmed
from workbench.controller.handlers.lease_over import lease_over
from workbench.controller.handlers.status import status
from workbench.controller.handlers.submit import submit
from workbench.controller.handlers.watch import watch
from workbench.controller.lab import Lab
from workbench.protocol.messages import (
    Attach,
    Cancel,
    GetStatus,
    LeaseConfirmed,
    LeaseOver,
    Message,
    Submit,
    Watch,
)
from workbench.transport.connection import Connection

Handler = Callable[[Lab, Connection[Any], Any], Awaitable[Message]]

HANDLERS: Final[Mapping[type[Message], Handler]] = {
    Attach: attach,
    Cancel: cancel,
    GetStatus: status,
    LeaseConfirmed: lease_confirmed,
    LeaseOver: lease_over,
    Submit: submit,
    Watch: watch,
}
