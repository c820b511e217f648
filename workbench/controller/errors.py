"""Errors of the controller.

UserError
├── LabIsNamed         a lab's controller is configured, so no embedded one starts
├── ProtocolMismatch   the peer speaks another protocol version
├── NotYours           the job or the lease is another user's
└── Unknown            there is no such job or lease
PeerError
├── PlaceTaken         another controller already serves here
└── JournalUnwritten   the journal could not be written; nothing changed
"""

from __future__ import annotations

from workbench.core.errors import PeerError, UserError


class LabIsNamed(UserError):
    """A lab's controller is configured, so no embedded one starts."""


class ProtocolMismatch(UserError):
    """The peer speaks another protocol version; the message gives both numbers."""


class NotYours(UserError):
    """The job or the lease is another user's; the refusal is logged."""


class Unknown(UserError):
    """There is no such job or lease."""


class PlaceTaken(PeerError):
    """Another controller already serves here; the message gives its pid."""


class JournalUnwritten(PeerError):
    """The journal could not be written; nothing changed, running jobs go on."""
