"""Checks, takes and gives back the units of a lease."""

from __future__ import annotations

from workbench.core.decisions import Grant
from workbench.core.matching import in_the_way, is_called, shared_bytes
from workbench.core.model import DeviceId, DeviceStatus, LeaseId, Request, Units
from workbench.core.state import THIS_HOST, Device, Sharer, State
from workbench.core.transitions import refuse


def check_units(state: State, decision: Grant, request: Request) -> None:
    """Refuses a grant of units that are not what was asked for, or not free."""
    units = decision.units
    if len(units.gpus) != request.gpus or len(set(units.gpus)) != len(units.gpus):
        refuse(decision, f"the job asked for {request.gpus} different GPUs")
    if units.share_bytes != (request.share_bytes or 0):
        refuse(decision, f"the job asked for {request.share_bytes or 0} bytes of a GPU")
    for gpu in units.gpus:
        device = state.devices.get(gpu)
        if device is None or not _may_be_leased(state, device, units):
            refuse(decision, f"{gpu} is leased, unknown or not available")
        if device.mig != (request.mig or ""):
            refuse(decision, f"the job asked for {request.mig or 'whole GPUs'}, not for {gpu}")
    if units.share_bytes:
        _check_room(state, decision, units.gpus[0])
    if request.models and not _is_of_one_model(state, units, request):
        refuse(decision, f"the job asked for one of {request.models}")
    if len({state.devices[gpu].simulated for gpu in units.gpus}) > 1:
        refuse(decision, "simulated and real GPUs are never mixed")
    _check_host(state, decision, units)


def _check_host(state: State, decision: Grant, units: Units) -> None:
    if THIS_HOST in state.drained:
        refuse(decision, "the host is drained")
    if state.host is None or units.cores > state.host.cores - state.leased_cores:
        refuse(decision, "that many cores are not free")
    if units.memory_bytes > max(state.host.memory_bytes - state.leased_memory_bytes, 0):
        refuse(decision, "that much memory is not free")


def _may_be_leased(state: State, device: Device, units: Units) -> bool:
    return (
        device.status is DeviceStatus.AVAILABLE
        and device.id not in state.holders
        and (device.id not in state.sharers or units.share_bytes > 0)
        and state.held is None
        and device.node not in state.drained
        and not (state.slices and any(in_the_way(state, device)))
    )


def _is_of_one_model(state: State, units: Units, request: Request) -> bool:
    gang = [state.devices[gpu] for gpu in units.gpus]
    return any(all(is_called(device, model) for device in gang) for model in request.models)


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
