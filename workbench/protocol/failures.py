"""An error on its way over a socket: as the `Failure` that tells of it, and back."""

from __future__ import annotations

from workbench.core.errors import BugError, NeverFits, PeerError, UserError, WorkbenchError
from workbench.protocol.messages import Failure


def failure_of(error: WorkbenchError) -> Failure:
    """Return the message that tells a peer of `error`."""
    return Failure(
        fault="user"
        if isinstance(error, UserError)
        else "peer"
        if isinstance(error, PeerError)
        else "bug",
        error=type(error).__name__,
        message=error.message,
        next_step=error.next_step,
    )


def error_of(failure: Failure) -> WorkbenchError:
    """Return the exception that a peer's `Failure` stands for; of classes only bases come back."""
    kinds = {"user": UserError, "peer": PeerError, "bug": BugError}
    kind = NeverFits if failure.error == NeverFits.__name__ else kinds[failure.fault]
    return kind(failure.message, next_step=failure.next_step)
