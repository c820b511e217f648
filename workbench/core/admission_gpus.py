"""Which GPUs, slices and shares can never be given, and the nearest request that could."""

from __future__ import annotations

from workbench.core.errors import NeverFits, UserError
from workbench.core.events import DrainStarted
from workbench.core.matching import (
    in_the_way,
    is_called,
    is_large_enough,
    models_of,
    shared_bytes,
    will_do,
)
from workbench.core.model import DeviceStatus, Request, Shape
from workbench.core.spelling import spell_bytes, spell_gpus
from workbench.core.state import THIS_HOST, Device, State


def check_node(state: State, event: DrainStarted) -> None:
    """Refuses to drain a node that is not there.

    Args:
        state: The state; it is not changed.
        event: Which node.

    Raises:
        UserError: No GPU was ever seen on it, and it is not the host itself.
    """
    nodes = dict.fromkeys(device.node for device in state.devices.values())
    if event.node != THIS_HOST and event.node not in nodes:
        named = ", ".join(node for node in nodes if node != THIS_HOST)
        message = f"node={event.node}: no such node is known here"
        next_step = f"Drain one of {named}" if named else "Drain the host itself"
        raise UserError(message, next_step=next_step)


def check_spelling(request: Request) -> None:
    """Refuses what no lab could give, whatever it has; alternatives included.

    Args:
        request: What a user asks for.

    Raises:
        NeverFits: Its share, profile and models contradict one another, or say nothing.
    """
    if request.share_bytes is not None:
        share = f"share={spell_bytes(request.share_bytes)}"
        if request.mig is not None:
            message = f"{share} and mig={request.mig}: a slice is not shared"
            raise NeverFits(message, next_step="Ask for one of the two")
        if request.gpus != 1:
            message = f"{share} and gpus={request.gpus}: a share is of one GPU"
            raise NeverFits(message, next_step="Ask for 1 GPU, or for whole GPUs without a share")
    if request.mig is not None:
        if not request.mig.strip():
            message = f"mig={request.mig!r} names no profile"
            raise NeverFits(message, next_step="Name one such as `1g.10gb`, or none for whole GPUs")
        if request.gpus == 0:
            message = f"mig={request.mig} and gpus=0: no slice is asked for"
            raise NeverFits(message, next_step="Ask for at least 1 slice, or for no profile")
    if not all(model.strip() for model in request.models):
        message = f"models={list(request.models)}: one of them names nothing"
        raise NeverFits(message, next_step="Name a part of a model or of a UUID, or no model")
    for shape in request.alternatives:
        share_bytes, mig = shape.share_bytes or None, shape.mig or None
        check_spelling(
            Request(gpus=shape.gpus, share_bytes=share_bytes, mig=mig, models=shape.models)
        )


def check_gpus(state: State, shape: Shape) -> None:
    """Refuses what this host could never give.

    Args:
        state: The state; it is not changed.
        shape: What is asked for.

    Raises:
        NeverFits: Also when all leases are over and all GPUs that may come back are back.
    """
    if shape.gpus == 0:
        return
    pool = _pool(state, shape)
    if not pool:
        message = f"gpus={shape.gpus}: there is no GPU on this host"
        raise NeverFits(message, next_step="Ask for no GPU (`--device cpu`)")
    of_kind = [gpu for gpu in pool if gpu.mig == shape.mig]
    if not of_kind:
        raise _no_such_kind(pool, shape)
    named = [gpu for gpu in of_kind if _is_named(gpu, shape)]
    if not named:
        raise _no_such_model(of_kind, shape)
    most = _most(pool, shape)
    if most < shape.gpus:
        raise _too_much(named, shape, most)


def _pool(state: State, shape: Shape) -> list[Device]:
    """Lists the GPUs and slices that a job may wait for: real or simulated, never both."""
    devices = [gpu for gpu in state.devices.values() if _may_come_back(state, gpu)]
    pools = [[gpu for gpu in devices if gpu.simulated is simulated] for simulated in (False, True)]
    return max(pools, key=lambda gpus: (_most(gpus, shape), len(gpus)))


def _may_come_back(state: State, gpu: Device) -> bool:
    """Whether a job may wait for this GPU: a simulated one was taken away for good.

    What is split into slices now stays so until an administrator changes it.
    """
    if gpu.mig == "" and any(in_the_way(state, gpu)):
        return False
    return not (gpu.simulated and gpu.status is DeviceStatus.MISSING)


def _most(gpus: list[Device], shape: Shape) -> int:
    """Counts what will do; of the entry of its models of which there are most."""
    return max(sum(will_do(gpu, shape, model) for gpu in gpus) for model in models_of(shape))


def _is_named(gpu: Device, shape: Shape) -> bool:
    return not shape.models or any(is_called(gpu, model) for model in shape.models)


def _no_such_kind(pool: list[Device], shape: Shape) -> NeverFits:
    profiles = list(dict.fromkeys(gpu.mig for gpu in pool if gpu.mig))
    if not shape.mig:
        message = f"gpus={shape.gpus}: all GPUs of this host are split into slices"
        return NeverFits(message, next_step=f"Ask for slices: {', '.join(profiles)}")
    message = f"mig={shape.mig}: this host has no such slice"
    if not profiles:
        return NeverFits(message, next_step="Ask for whole GPUs, or for a share of one")
    return NeverFits(message, next_step=f"Ask for one of {', '.join(profiles)}")


def _no_such_model(gpus: list[Device], shape: Shape) -> NeverFits:
    message = f"models={', '.join(shape.models)}: no GPU of this host is called so"
    there = list(dict.fromkeys(gpu.model or gpu.id for gpu in gpus))
    return NeverFits(message, next_step=f"Ask for one of {', '.join(there)}")


def _too_much(pool: list[Device], shape: Shape, large: int) -> NeverFits:
    """Names what is too large, and the largest that would fit: fewer GPUs, or smaller ones."""
    if shape.share_bytes:
        return _too_large_a_share(pool, shape)
    of_models = f" ({' or '.join(shape.models)})" if shape.models else ""
    there = f"{spell_gpus(large, shape.mig)}{of_models}"
    gpus = f"gpus={shape.gpus}: this host has {there}"
    fewer = f"Ask for at most {there}"
    if not shape.gpu_memory_bytes:
        return NeverFits(gpus, next_step=fewer)
    asked = spell_bytes(shape.gpu_memory_bytes)
    size = _largest_each(pool, shape, shape.gpus)
    if large == 0:
        return _too_large(pool, shape)
    message = f"{gpus} with {asked} or more"
    smaller = None if size is None else f"for at most {spell_bytes(size)} of memory each"
    return NeverFits(message, next_step=f"{fewer}, or {smaller}" if smaller else fewer)


def _too_large(pool: list[Device], shape: Shape) -> NeverFits:
    """Says that not even one GPU has that much memory."""
    asked = spell_bytes(shape.gpu_memory_bytes)
    largest = _largest_each(pool, shape, 1)
    if largest is None:
        message = f"gpu_memory={asked}: no GPU of this host says how much memory it has"
        return NeverFits(message, next_step="Ask for no amount of GPU memory")
    message = f"gpu_memory={asked}: the largest GPU of this host has {spell_bytes(largest)}"
    most = next(n for n in range(shape.gpus, 0, -1) if _largest_each(pool, shape, n) is not None)
    size = _largest_each(pool, shape, most)
    assert size is not None
    smaller = f"at most {spell_bytes(size)} of memory each"
    return NeverFits(message, next_step=f"Ask for {spell_gpus(most, shape.mig)} with {smaller}")


def _largest_each(pool: list[Device], shape: Shape, gpus: int) -> int | None:
    """Says how much memory each of so many GPUs of one entry could have; None for too many."""
    best: int | None = None
    for model in models_of(shape):
        sizes = [
            gpu.memory_bytes
            for gpu in pool
            if gpu.memory_bytes is not None and (not model or is_called(gpu, model))
        ]
        if len(sizes) >= gpus:
            size = sorted(sizes, reverse=True)[gpus - 1]
            best = size if best is None else max(best, size)
    return best


def _too_large_a_share(pool: list[Device], shape: Shape) -> NeverFits:
    asked = f"share={spell_bytes(shape.share_bytes)}"
    enough = [gpu for gpu in pool if is_large_enough(gpu, shape.gpu_memory_bytes)]
    if not enough:
        return _too_large(pool, shape)
    largest = max(shared_bytes(gpu) for gpu in enough)
    if largest == 0:
        message = f"{asked}: no GPU of this host says how much memory it has"
        return NeverFits(message, next_step="Ask for a GPU without a share")
    most = spell_bytes(largest)
    message = f"{asked}: the largest GPU of this host gives at most {most} to shares"
    return NeverFits(message, next_step=f"Ask for at most {most}, or for a GPU without a share")
