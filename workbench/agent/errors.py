"""Errors of the agent.

UserError
├── NotHere          this agent holds no such job, or no such session
├── NotComplete      a job directory that cannot be taken over as it is
├── NotReady         a kernel's lease that cannot be taken: not granted, in use or over
└── StillRunning     what was asked would pull a running job's files away
PeerError
├── ProtocolMismatch a client or a session's Python speaks another version
├── ZygoteLost       a session's zygote went away in the middle; another one may be started
└── CannotStart      a session's Python cannot run jobs; the message ends with what it said
"""

from __future__ import annotations

from workbench.core.errors import PeerError, UserError


class NotHere(UserError):
    """This agent holds no such job, or no such session."""


class NotComplete(UserError):
    """A job directory that cannot be taken over as it is."""


class NotReady(UserError):
    """A kernel's lease that cannot be taken: it is not granted, in use or over."""


class StillRunning(UserError):
    """What was asked would pull a running job's files away."""


class ProtocolMismatch(PeerError):
    """A client or a session's Python speaks another protocol version."""


class ZygoteLost(PeerError):
    """A session's zygote went away in the middle; another one may be started."""


class CannotStart(PeerError):
    """A session's Python cannot run jobs; the message ends with what it said."""
