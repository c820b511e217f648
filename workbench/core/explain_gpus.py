"""Why the GPUs, slices or shares that a job waits for are not free."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.core.booking_reasons import many
from workbench.core.matching import in_the_way, models_of, shared_bytes, will_do
from workbench.core.model import DeviceId, DeviceStatus, Shape
from workbench.core.placement import gpus_in_service
from workbench.core.spelling import short_device, short_job, spell_bytes, spell_gpus
from workbench.core.state import Device, State

_DEVICES_NAMED = 4
"""A sentence names this many GPUs and counts the rest."""


def why_no_gpus(state: State, shape: Shape, closed: Mapping[DeviceId, str]) -> str:
    """Says what a job waits for, and who has it.

    Args:
        state: The state; it is not changed.
        shape: What it asks for.
        closed: GPUs that others booked and have now, and what to say of them.

    Returns:
        One sentence without its full stop; empty where there are enough, or none is asked for.
    """
    if not shape.gpus:
        return ""
    serving = gpus_in_service(state)
    most = 0
    blocked: dict[str, None] = {}
    for model in models_of(shape):
        good = [gpu for gpu in serving if will_do(gpu, shape, model)]
        shut = [closed[gpu.id] for gpu in good if gpu.id in closed]
        others = [gpu for gpu in good if gpu.id not in closed]
        whys = [why for gpu in others if (why := _why_not_free(state, gpu, shape))]
        most = max(most, len(others) - len(whys))
        booked = [many(why, shut.count(why)) for why in dict.fromkeys(shut)]
        blocked |= dict.fromkeys([*booked, *whys, *_missing(state, shape, model)])
    if most >= shape.gpus:
        return ""
    named = list(blocked)[:_DEVICES_NAMED]
    if len(blocked) > len(named):
        named.append(f"{len(blocked) - len(named)} more")
    why = ", ".join(named) or "no other GPU in service is large enough"
    return f"it waits for {_wanted(shape)}, {_spell_free(shape, most)}: {why}"


def _wanted(shape: Shape) -> str:
    wanted = spell_gpus(shape.gpus, shape.mig)
    if shape.share_bytes:
        wanted = f"{spell_bytes(shape.share_bytes)} of a GPU"
    if shape.models:
        wanted += f" ({' or '.join(shape.models)})"
    if shape.gpu_memory_bytes:
        wanted += f" with {spell_bytes(shape.gpu_memory_bytes)} each"
    return wanted


def _spell_free(shape: Shape, most: int) -> str:
    return "none has room" if shape.share_bytes else f"{most} free"


def _missing(state: State, shape: Shape, model: str) -> list[str]:
    """Names the GPUs that were there before and may come back.

    Not those that are not simulated any more, and while GPUs are simulated not the real ones.
    """
    if any(gpu.simulated for gpu in gpus_in_service(state)):
        return []
    return [
        f"{short_device(gpu.id)} is missing ({gpu.reason})"
        for gpu in state.devices.values()
        if gpu.status is DeviceStatus.MISSING and not gpu.simulated and will_do(gpu, shape, model)
    ]


def _why_not_free(state: State, gpu: Device, shape: Shape) -> str:
    name, holder = short_device(gpu.id), state.holders.get(gpu.id)
    if gpu.status is not DeviceStatus.AVAILABLE:
        return f"{name} is {gpu.status} ({gpu.reason})"
    if holder:
        return f"{name} is held by {short_job(state.leases[holder])}"
    if gpu.node in state.drained:
        return f"{name} is on {gpu.node}, which is drained ({state.drained[gpu.node]})"
    if part := next(in_the_way(state, gpu), None):
        if gpu.mig:
            return f"{name} is part of {short_device(part)}, which is leased as a whole"
        return f"{name} is split into slices"
    return _why_no_room(state, gpu, shape)


def _why_no_room(state: State, gpu: Device, shape: Shape) -> str:
    sharers = state.sharers.get(gpu.id, ())
    left = shared_bytes(gpu) - sum(sharer.share_bytes for sharer in sharers)
    if not sharers or (shape.share_bytes and left >= shape.share_bytes):
        return ""
    whose = " and ".join(short_job(state.leases[sharer.lease]) for sharer in sharers)
    has_left = f", {spell_bytes(max(left, 0))} left" if shape.share_bytes else ""
    return f"{short_device(gpu.id)} is shared by {whose}{has_left}"
