"""How far a job of a replay got."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from workbench.core.model import DeviceId, LeaseId, Seconds, Uid
from workbench.simulate.metrics import Stint
from workbench.simulate.workload import SimJob

_NEVER: Final = float("inf")


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far a job got.

    Attributes:
        left_s: Service at full speed that is still to come, restarts included.
        gpus: Those that it runs on.
        ending: Which of the endings is its own; None while it does not run.
        started_s: Since when it runs on these GPUs.
        lease: The one it holds.
    """

    job: SimJob
    owner: Uid
    left_s: Seconds
    gpus: tuple[DeviceId, ...] = ()
    ending: int | None = None
    lease: LeaseId | None = None
    started_s: Seconds = 0.0
    end_s: Seconds = _NEVER
    stints: list[Stint] = field(default_factory=list)
    preemptions: int = 0
    shrinks: int = 0
    suspensions: int = 0

    @property
    def speed(self) -> float:
        """The part of full speed that it runs at."""
        wanted = self.job.gpus
        return len(self.gpus) / wanted if len(self.gpus) < wanted else 1.0
