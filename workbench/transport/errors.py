"""Errors of the transport.

PeerError
├── ConnectionLost      the peer went away; reconnect
│   └── BrokenProtocol  the peer sent what does not fit the protocol
├── NobodyListens       nothing serves that socket
└── UntrustedPeer       the socket is served by a user whom we do not trust
UserError
└── BadPlace            a directory or socket path cannot be used as it is
"""

from __future__ import annotations

from workbench.core.errors import PeerError, UserError


class ConnectionLost(PeerError):
    """The peer went away in the middle; reconnect and ask again."""


class BrokenProtocol(ConnectionLost):
    """The peer sent what does not fit the protocol, so the connection is of no more use."""


class NobodyListens(PeerError):
    """Nothing serves that socket."""


class UntrustedPeer(PeerError):
    """The socket is served by a user whom we do not trust."""


class BadPlace(UserError):
    """A directory or a socket path cannot be used as it is; the message says what to change."""
