"""Which GPUs and slices will do for a request, whoever holds them now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from workbench.core.model import DeviceId, DeviceStatus, Shape
from workbench.core.state import Device, State

MARGIN_PCT: Final = 5
"""So much of a GPU is never declared to shares: each process that uses it also holds a context,
some hundreds of MiB that are not in what people declare, and memory is lost between allocations.
On 80 GiB it leaves 4 GiB, about what ten processes hold."""


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


def shared_bytes(device: Device) -> int:
    """Says how much memory of a GPU shares may declare together.

    Args:
        device: The GPU.

    Returns:
        All of it less a margin; 0 where its memory is unknown.
    """
    if device.memory_bytes is None:
        return 0
    return device.memory_bytes * (100 - MARGIN_PCT) // 100


def is_called(device: Device, name: str) -> bool:
    """Tells whether a GPU is what one entry of a request's models names.

    Args:
        device: The GPU.
        name: A part of the model's name in any case, or the beginning of a UUID.
    """
    wanted = name.casefold()
    return wanted in device.model.casefold() or device.id.casefold().startswith(wanted)


def will_do(device: Device, shape: Shape, model: str) -> bool:
    """Tells whether a unit could ever be given for a request.

    Args:
        device: A GPU or a slice.
        shape: What is asked for.
        model: The entry of its models that is meant; empty for any.
    """
    return (
        device.mig == shape.mig
        and is_large_enough(device, shape.gpu_memory_bytes)
        and (not shape.share_bytes or shared_bytes(device) >= shape.share_bytes)
        and (not model or is_called(device, model))
    )


def models_of(shape: Shape) -> tuple[str, ...]:
    """Lists what a gang may consist of, the preferred first.

    Args:
        shape: What is asked for.

    Returns:
        Its models; one that is empty where any will do.
    """
    return shape.models or ("",)


def in_the_way(state: State, device: Device) -> Iterator[DeviceId]:
    """Names what keeps a unit from being leased although nobody holds it: parts of the same card.

    A slice that is missing is in the way as long as a lease names it: the driver may be mistaken.

    Args:
        state: The state; it is not changed.
        device: A GPU or a slice.

    Returns:
        Of a GPU its slices, of a slice the GPU that is leased as a whole.
    """
    if device.parent is not None:
        if device.parent in state.holders or device.parent in state.sharers:
            yield device.parent
        return
    for part in state.slices.get(device.id, ()):
        if state.devices[part].status is not DeviceStatus.MISSING or part in state.holders:
            yield part


class Choice(NamedTuple):
    """The units that will do for some shapes, free or not.

    Attributes:
        is_all: Whether that is every unit of the pool.
        will_do: For each rank, whether it is one of them.
        sizes: How many there are on each node.
        largest: The largest of the sizes.
    """

    is_all: bool
    will_do: list[bool]
    sizes: list[int]
    largest: int
