"""lease.json: what a grant gives, and the environment it makes. Standard library only."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from workbench.agent.process import mark_of
from workbench.devices.visible import lease_environment
from workbench.protocol.environment import SIMULATED
from workbench.protocol.job_files import LEASE, create_json, read_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """One grant, as the agent wrote it down.

    Attributes:
        lease: The controller's lease id.
        job: The job id.
        gpus: UUIDs in the order in which the job sees them.
        cores: CPU cores.
        simulated: The GPUs exist only for teaching; the job runs on the CPU.
        grace_s: Seconds between TERM and KILL when the job is ended.
        gpu_memory_bytes: What the job asked for on each GPU; None for any.
    """

    lease: str
    job: str
    gpus: list[str]
    cores: int
    simulated: bool
    grace_s: float
    gpu_memory_bytes: int | None = None

    @property
    def mark(self) -> str:
        """What the tree of this lease carries in its environment."""
        return mark_of(self.job, self.lease)

    @property
    def real_gpus(self) -> list[str]:
        """UUIDs of the cards that the job may use."""
        return [] if self.simulated else self.gpus

    def environment(self) -> dict[str, str]:
        """Return the variables that hold while the job runs."""
        variables = lease_environment(self.real_gpus)
        if self.simulated and self.gpus:
            variables[SIMULATED] = ",".join(self.gpus)
        return variables


def create_lease(directory: Path, lease: Lease) -> Lease:
    """Write lease.json unless there is one, and return the one that is there."""
    if create_json(directory / LEASE, asdict(lease)):
        return lease
    found = read_lease(directory)
    assert found is not None
    return found


def read_lease(directory: Path) -> Lease | None:
    """Return the lease in a job directory, or None where none was granted."""
    value = read_json(directory / LEASE)
    return None if value is None else Lease(**value)
