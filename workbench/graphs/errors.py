"""Errors of the code analysis and of running a plan.

UserError
└── CellRefused      the cell does what a scheduled cell cannot do
PeerError
├── WorkerLost       a task ended its worker, and did so again
└── WrongDevice      a GPU worker sees another GPU than the one it was started for
BugError
└── PlanMismatch     a plan and a cell that do not belong together
"""

from __future__ import annotations

from workbench.core.errors import BugError, PeerError, UserError


class CellRefused(UserError):
    """The cell does what a scheduled cell cannot do; nothing was queued."""


class WorkerLost(PeerError):
    """A task ended its worker, and did so again; what came before it is kept."""


class WrongDevice(PeerError):
    """A GPU worker sees another GPU than the one it was started for, and refuses to work."""


class PlanMismatch(BugError):
    """A plan and a cell that do not belong together."""
