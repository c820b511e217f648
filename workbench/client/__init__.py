"""The only door to controller and agent. Read `controller.py`, then `session.py`.

Everything is asynchronous; `background.py` is the thin sync face that notebooks use. What needs
pickling (`Job`) is loaded when first asked for, so that the command line starts quickly.
"""

import importlib
from typing import TYPE_CHECKING, Any

from workbench.client.agent import AgentClient
from workbench.client.background import Background
from workbench.client.controller import ControllerClient
from workbench.client.session import KernelSession, Staged
from workbench.core.errors import BugError, NeverFits, PeerError, UserError, WorkbenchError
from workbench.transport.errors import NobodyListens
from workbench.transport.paths import (
    agent_socket,
    controller_place,
    jobs_directory,
    state_directory,
)
from workbench.transport.start import why_no_scope

if TYPE_CHECKING:
    from workbench.client.job import Job, JobFailed

__all__ = [
    "AgentClient",
    "Background",
    "BugError",
    "ControllerClient",
    "Job",
    "JobFailed",
    "KernelSession",
    "NeverFits",
    "NobodyListens",
    "PeerError",
    "Staged",
    "UserError",
    "WorkbenchError",
    "agent_socket",
    "controller_place",
    "jobs_directory",
    "state_directory",
    "why_no_scope",
]


def __getattr__(name: str) -> Any:
    """Load `Job` and `JobFailed` when they are first asked for."""
    if name in {"Job", "JobFailed"}:
        return getattr(importlib.import_module("workbench.client.job"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
