"""Hello: exchange versions. Another protocol is refused until a first release exists."""

from __future__ import annotations

from workbench.controller.errors import ProtocolMismatch
from workbench.controller.lab import Lab
from workbench.protocol.messages import PROTOCOL, Hello, Welcome


def hello(lab: Lab, message: Hello) -> Welcome:
    """Say who serves here.

    Raises:
        ProtocolMismatch: The peer speaks another version.
    """
    if message.protocol != PROTOCOL:
        restart = (
            "`workbench down` and try again"
            if lab.view.mode == "embedded"
            else "ask whoever keeps this host to restart the controller"
        )
        raise ProtocolMismatch(
            f"the controller (gpu-workbench {lab.view.software}) speaks protocol {PROTOCOL}, you "
            f"(gpu-workbench {message.software}) speak {message.protocol}",
            next_step=f"Run `pip install -U gpu-workbench` in both environments, then {restart}",
        )
    return Welcome(
        protocol=PROTOCOL,
        software=lab.view.software,
        pid=lab.view.pid,
        mode=lab.view.mode,
        started_unix_s=lab.started_unix_s,
    )
