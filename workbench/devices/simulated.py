"""Simulated GPUs for teaching: named, sized and labelled, and never with made-up figures."""

from __future__ import annotations

import re
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from workbench.devices.catalogue import GpuModel, get_model
from workbench.devices.errors import BadSimulation
from workbench.devices.source import SourceReading
from workbench.protocol.telemetry import DeviceSample, NotAvailable, Reading

MOST_DEVICES = 64
EXAMPLE = "4xA100-SXM4-80GB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """How many GPUs of which model to simulate."""

    count: int
    model: GpuModel

    def __str__(self) -> str:
        return f"{self.count}x{self.model.name}"

    @classmethod
    def parse(cls, text: str) -> Simulation:
        """Read `COUNTxMODEL`, for example `4xA100-SXM4-80GB`.

        Raises:
            BadSimulation: Not of that form, or a count out of range.
            UnknownModel: No such model.
        """
        match = re.fullmatch(r"\s*(\d+)\s*[xX]\s*(\S.*?)\s*", text)
        if match is None:
            raise BadSimulation(
                f"--simulate {text!r} is not COUNTxMODEL",
                next_step=f"Write, for example, --simulate {EXAMPLE}",
            )
        count = int(match[1])
        if not 1 <= count <= MOST_DEVICES:
            raise BadSimulation(
                f"--simulate {text!r} asks for {count} GPUs",
                next_step=f"Ask for 1 to {MOST_DEVICES}",
            )
        return cls(count=count, model=get_model(match[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedUse:
    """What the leases say that a simulated GPU is doing."""

    util_pct: float
    memory_used_bytes: int


class SimulatedSource:
    """A device source of simulated GPUs.

    Args:
        simulation: Count and model.
        hostname: Part of the UUIDs, which are the same at every start on one host.
        use_of: What the lease on this UUID does; without it, use is unknown, not invented.
    """

    def __init__(
        self,
        simulation: Simulation,
        *,
        hostname: str | None = None,
        use_of: Callable[[str], SimulatedUse] | None = None,
    ) -> None:
        host = hostname or socket.gethostname()
        self._simulation = simulation
        self._use_of = use_of
        self._uuids = [
            f"SIM-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{index}.{host}')}"
            for index in range(simulation.count)
        ]

    def read(self) -> SourceReading:
        """All simulated GPUs as their leases say."""
        return SourceReading(
            devices=tuple(self._sample(index, uuid) for index, uuid in enumerate(self._uuids))
        )

    def close(self) -> None:
        """Nothing is held."""

    def _sample(self, index: int, device: str) -> DeviceSample:
        nothing = Reading(reason=NotAvailable.SIMULATED)
        use = self._use_of(device) if self._use_of else None
        return DeviceSample(
            uuid=device,
            index=index,
            name=self._simulation.model.name,
            simulated=True,
            memory_total_bytes=Reading(self._simulation.model.memory_bytes),
            memory_used_bytes=Reading(use.memory_used_bytes) if use else nothing,
            util_pct=Reading(use.util_pct) if use else nothing,
            processes_reason=NotAvailable.SIMULATED,
        )
