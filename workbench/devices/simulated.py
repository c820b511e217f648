"""Simulated GPUs for teaching: named, sized and labelled, and never with made-up figures."""

from __future__ import annotations

import re
import socket
import uuid
from dataclasses import dataclass

from workbench.devices.catalogue import GpuModel, get_model
from workbench.devices.errors import BadSimulation
from workbench.devices.source import SourceReading
from workbench.devices.visible import SIMULATED_PREFIX
from workbench.protocol.telemetry import DeviceSample, NotAvailable, Reading

MOST_DEVICES = 64
MOST_DIGITS = 9
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
        # Python reads no number of thousands of digits.
        count = int(match[1]) if len(match[1]) <= MOST_DIGITS else MOST_DEVICES + 1
        if not 1 <= count <= MOST_DEVICES:
            raise BadSimulation(
                f"--simulate {text!r} asks for {match[1]} GPUs",
                next_step=f"Ask for 1 to {MOST_DEVICES}",
            )
        return cls(count=count, model=get_model(match[2]))


class SimulatedSource:
    """A device source of simulated GPUs.

    Args:
        simulation: Count and model.
        hostname: Part of the UUIDs, which are the same at every start on one host.
    """

    def __init__(self, simulation: Simulation, *, hostname: str | None = None) -> None:
        host = hostname or socket.gethostname()
        self._simulation = simulation
        self._uuids = [
            f"{SIMULATED_PREFIX}{uuid.uuid5(uuid.NAMESPACE_DNS, f'{index}.{host}')}"
            for index in range(simulation.count)
        ]

    def read(self) -> SourceReading:
        """All simulated GPUs; their use is unknown, not invented."""
        return SourceReading(
            devices=tuple(self._sample(index, uuid) for index, uuid in enumerate(self._uuids))
        )

    def close(self) -> None:
        """Nothing is held."""

    def _sample(self, index: int, device: str) -> DeviceSample:
        nothing = Reading(reason=NotAvailable.SIMULATED)
        return DeviceSample(
            uuid=device,
            index=index,
            name=self._simulation.model.name,
            simulated=True,
            memory_total_bytes=Reading(self._simulation.model.memory_bytes),
            memory_used_bytes=nothing,
            util_pct=nothing,
            processes_reason=NotAvailable.SIMULATED,
        )
