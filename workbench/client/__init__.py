"""The only door to controller and agent. Read `controller.py`, then `session.py`.

Everything is asynchronous; `background.py` is the thin sync face that notebooks use.
"""

from workbench.client.agent import AgentClient
from workbench.client.background import Background
from workbench.client.controller import ControllerClient
from workbench.client.job import Job, JobFailed
from workbench.client.session import KernelSession, Staged
from workbench.core.errors import BugError, NeverFits, PeerError, UserError, WorkbenchError

__all__ = [
    "AgentClient",
    "Background",
    "BugError",
    "ControllerClient",
    "Job",
    "JobFailed",
    "KernelSession",
    "NeverFits",
    "PeerError",
    "Staged",
    "UserError",
    "WorkbenchError",
]
