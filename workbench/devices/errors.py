"""What can go wrong with devices.

UserError
├── BadSimulation      `--simulate` does not read as COUNTxMODEL
└── UnknownModel       no such GPU model in the catalogue
PeerError
├── NvmlUnavailable    NVML as a whole cannot be used; carries which way and what to do
└── QueryFailed        one query about one device failed; carries the reason
"""

from __future__ import annotations

from workbench.core.errors import PeerError, UserError
from workbench.protocol.telemetry import NotAvailable, NvmlState


class BadSimulation(UserError):
    """`--simulate` does not read as COUNTxMODEL; the message says how to write it."""


class UnknownModel(UserError):
    """The catalogue has no such GPU model; the next step names those that it has."""


class NvmlUnavailable(PeerError):
    """NVML as a whole cannot be used now; try again later.

    Attributes:
        state: Which way it is unavailable and what a person can do.
    """

    def __init__(self, state: NvmlState) -> None:
        super().__init__(state.message, next_step=state.next_step)
        self.state = state


class QueryFailed(PeerError):
    """One query failed; the device's other figures may still be had.

    Attributes:
        reason: What to show instead of the figure.
    """

    def __init__(self, function: str, reason: NotAvailable) -> None:
        super().__init__(f"{function}: {reason}")
        self.reason = reason
