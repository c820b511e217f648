"""What went wrong, as the browser is told. The only mapping from errors to HTTP statuses.

UserError   400   the request cannot be carried out; the message says what to change
PeerError   503   the controller, the driver or the disk; the message says what to do
otherwise   500   Workbench itself is wrong
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from workbench.client import WorkbenchError
from workbench.protocol.failures import failure_of
from workbench.protocol.messages import Failure

HTTP_STATUS: Final = {
    "user": HTTPStatus.BAD_REQUEST,
    "peer": HTTPStatus.SERVICE_UNAVAILABLE,
    "bug": HTTPStatus.INTERNAL_SERVER_ERROR,
}


def failure_from(error: BaseException) -> Failure:
    """Return the message that tells a browser of `error`."""
    if not isinstance(error, WorkbenchError):
        name = type(error).__name__
        return Failure(
            fault="bug",
            error=name,
            message=f"Workbench's half in the Jupyter server failed with {name}: {error}",
            next_step="Look into the Jupyter server's log and report what it says",
        )
    return failure_of(error)
