"""Checks, takes and gives back the units of a lease."""

from __future__ import annotations

from workbench.core.decisions import Grant
from workbench.core.matching import in_the_way, is_called, shared_bytes
from workbench.core.model import DeviceId, DeviceStatus, LeaseId, Request, Shape, Units
from workbench.core.placement import shapes_of
from workbench.core.spelling import spell_gpus
from workbench.core.state import THIS_HOST, Device, Sharer, State
from workbench.core.transitions import refuse


def check_units(state: State, decision: Grant, request: Request) -> None:
    """Refuses a grant of units that are not what was asked for, or not free."""
    units = decision.units
    if len(set(units.gpus)) != len(units.gpus):
        refuse(decision, "a GPU is named twice")
    whys = [_unlike(state, units, shape) for shape in shapes_of(request)]
    if all(whys):
        refuse(decision, f"the job asked for {whys[0]}")
    for gpu in units.gpus:
        device = state.devices.get(gpu)
        if device is None or not may_be_leased(state, device, units):
            refuse(decision, f"{gpu} is leased, unknown or not available")
    if units.share_bytes:
        _check_room(state, decision, units.gpus[0])
    if len({state.devices[gpu].simulated for gpu in units.gpus}) > 1:
        refuse(decision, "simulated and real GPUs are never mixed")
    _check_host(state, decision, units)


def _unlike(state: State, units: Units, shape: Shape) -> str:
    """Says what a job asked for that these units are not; empty where they are that."""
    if len(units.gpus) != shape.gpus:
        return spell_gpus(shape.gpus, shape.mig)
    if units.share_bytes != shape.share_bytes:
        return f"{shape.share_bytes} bytes of a GPU"
    gang = [device for gpu in units.gpus if (device := state.devices.get(gpu))]
    if any(device.mig != shape.mig for device in gang):
        return f"slices {shape.mig}" if shape.mig else "whole GPUs"
    if shape.models and not any(
        all(is_called(device, model) for device in gang) for model in shape.models
    ):
        return f"one of {shape.models}"
    return ""


def _check_host(state: State, decision: Grant, units: Units) -> None:
    if THIS_HOST in state.drained:
        refuse(decision, "the host is drained")
    if state.host is None or units.cores > state.host.cores - state.leased_cores:
        refuse(decision, "that many cores are not free")
    if units.memory_bytes > max(state.host.memory_bytes - state.leased_memory_bytes, 0):
        refuse(decision, "that much memory is not free")


def may_be_leased(state: State, device: Device, units: Units) -> bool:
    """Tells whether a GPU can be among these units of a lease from now on."""
    return (
        device.status is DeviceStatus.AVAILABLE
        and device.id not in state.holders
        and (device.id not in state.sharers or units.share_bytes > 0)
        and state.held is None
        and device.node not in state.drained
        and not (state.slices and any(in_the_way(state, device)))
    )


def _check_room(state: State, decision: Grant, gpu: DeviceId) -> None:
    taken = sum(sharer.share_bytes for sharer in state.sharers.get(gpu, ()))
    if taken + decision.units.share_bytes > shared_bytes(state.devices[gpu]):
        refuse(decision, f"{gpu} has not that much memory left for shares")


def take(state: State, lease: LeaseId, units: Units) -> None:
    """Notes that a lease has units."""
    if units.share_bytes:
        gpu = units.gpus[0]
        others = state.sharers.get(gpu, ())
        state.sharers[gpu] = (*others, Sharer(lease, units.share_bytes))
    else:
        for gpu in units.gpus:
            state.holders[gpu] = lease
    state.leased_cores += units.cores
    state.leased_memory_bytes += units.memory_bytes


def give_back(state: State, lease: LeaseId, units: Units) -> None:
    """Notes that a lease has its units no more."""
    if units.share_bytes:
        gpu = units.gpus[0]
        others = tuple(sharer for sharer in state.sharers[gpu] if sharer.lease != lease)
        if others:
            state.sharers[gpu] = others
        else:
            del state.sharers[gpu]
    else:
        for gpu in units.gpus:
            del state.holders[gpu]
    state.leased_cores -= units.cores
    state.leased_memory_bytes -= units.memory_bytes
