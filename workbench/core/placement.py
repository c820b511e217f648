"""Which units a request gets: whole GPUs, the smallest that are large enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from workbench.core.model import DeviceStatus, Request, Units
from workbench.core.state import Device, State


class Shape(NamedTuple):
    """What placement looks at in a request; jobs of one shape fit or do not fit together."""

    gpus: int
    gpu_memory_bytes: int
    cores: int
    memory_bytes: int

    @classmethod
    def of(cls, request: Request) -> Shape:
        """Takes from a request what placement looks at.

        Args:
            request: Any request.

        Returns:
            Its shape; 0 stands for what it does not ask for.
        """
        return cls(
            gpus=request.gpus,
            gpu_memory_bytes=(request.gpu_memory_bytes or 0) if request.gpus else 0,
            cores=request.cores,
            memory_bytes=request.memory_bytes or 0,
        )


def is_large_enough(device: Device, gpu_memory_bytes: int) -> bool:
    """Tells whether a GPU has this much memory in all.

    Args:
        device: The GPU.
        gpu_memory_bytes: What is asked for; 0 for any.

    Returns:
        False where its memory is unknown and some is asked for.
    """
    return gpu_memory_bytes == 0 or (
        device.memory_bytes is not None and device.memory_bytes >= gpu_memory_bytes
    )


def gpus_to_lease(state: State) -> list[Device]:
    """Lists the GPUs that may be leased, whether a lease holds them now or not.

    Args:
        state: The state; it is not changed.

    Returns:
        The available ones of `gpus_in_service`, in its order; none while dispatch is held.
    """
    if state.held is not None:
        return []
    return [gpu for gpu in gpus_in_service(state) if gpu.status is DeviceStatus.AVAILABLE]


def gpus_in_service(state: State) -> list[Device]:
    """Lists the GPUs that jobs of this host run on, busy and broken ones included.

    Simulated GPUs serve only a host without real ones, so that none is ever chosen in place of a
    real one and a gang never mixes the two.

    Args:
        state: The state; it is not changed.

    Returns:
        Real GPUs that are not missing or, if there is none, the simulated ones; smallest first
        (unknown memory last), then in the order in which they were first seen.
    """
    present = [gpu for gpu in state.devices.values() if gpu.status is not DeviceStatus.MISSING]
    serving = [gpu for gpu in present if not gpu.simulated] or present
    return sorted(serving, key=lambda gpu: (gpu.memory_bytes is None, gpu.memory_bytes or 0))


@dataclass(slots=True)
class Free:
    """What may be handed out; a scratch copy that a planner takes from and gives back to.

    Attributes:
        gpus: In the order in which placement prefers them.
        cores: Negative where the host shrank below what is leased.
        memory_bytes: Likewise.
    """

    gpus: list[Device]
    cores: int
    memory_bytes: int

    @classmethod
    def of(cls, state: State) -> Free:
        """Finds what may be handed out now.

        Args:
            state: The state; it is not changed.

        Returns:
            A copy of the caller's own.
        """
        if state.host is None:
            return cls(gpus=[], cores=0, memory_bytes=0)
        return cls(
            gpus=[gpu for gpu in gpus_to_lease(state) if gpu.id not in state.holders],
            cores=state.host.cores - state.leased_cores,
            memory_bytes=state.host.memory_bytes - state.leased_memory_bytes,
        )

    def take(self, units: Units) -> None:
        """Removes what was handed out.

        Args:
            units: Units that `place` returned for this object.
        """
        self.gpus = [gpu for gpu in self.gpus if gpu.id not in units.gpus]
        self.cores -= units.cores
        self.memory_bytes -= units.memory_bytes

    def give_back(self, units: Units, usable: list[Device]) -> None:
        """Adds what would come back when a lease ends.

        Args:
            units: The lease's.
            usable: The GPUs that may be handed out once free, in the order of preference; others
                among the units stay out.
        """
        free = {gpu.id: None for gpu in self.gpus} | dict.fromkeys(units.gpus)
        self.gpus = [gpu for gpu in usable if gpu.id in free]
        self.cores += units.cores
        self.memory_bytes += units.memory_bytes


def place(free: Free, shape: Shape) -> Units | None:
    """Chooses units for a request.

    Args:
        free: What may be handed out; it is not changed.
        shape: What is asked for.

    Returns:
        The units, all at once; None where not all of them are free.
    """
    if shape.cores > free.cores or shape.memory_bytes > max(free.memory_bytes, 0):
        return None
    chosen = [gpu.id for gpu in free.gpus if is_large_enough(gpu, shape.gpu_memory_bytes)]
    if len(chosen) < shape.gpus:
        return None
    return Units(
        gpus=tuple(chosen[: shape.gpus]), cores=shape.cores, memory_bytes=shape.memory_bytes
    )
