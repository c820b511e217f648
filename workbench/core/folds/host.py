"""Folds what is told of the host, its GPUs and the users' agents."""

from __future__ import annotations

from dataclasses import replace

from workbench.core import fairness
from workbench.core.events import (
    AgentConnected,
    AgentLost,
    DeviceBusyOutside,
    DeviceLost,
    DeviceSeen,
    DispatchHeld,
    DispatchResumed,
    DrainEnded,
    DrainStarted,
    FairShareSet,
    HostSeen,
    Tick,
)
from workbench.core.folds.bookings import note_change
from workbench.core.model import DeviceStatus
from workbench.core.state import Device, Host, State
from workbench.core.transitions import refuse


def host_seen(state: State, event: HostSeen) -> None:
    if event.cores < 1 or event.memory_bytes < 1:
        refuse(event, "a host has cores and memory")
    state.host = Host(cores=event.cores, memory_bytes=event.memory_bytes)


def device_seen(state: State, event: DeviceSeen) -> None:
    known = state.devices.get(event.device)
    if known is not None and known.simulated != event.simulated:
        refuse(event, "a UUID is simulated for ever or never")
    if known is not None and (known.mig, known.parent) != (event.mig, event.parent):
        refuse(event, "a UUID is the same slice of one GPU for ever or never")
    if event.parent is not None and not event.mig:
        refuse(event, "a slice has a profile")
    busy = event.busy_outside is not None
    device = Device(
        id=event.device,
        model=event.model,
        memory_bytes=event.memory_bytes,
        simulated=event.simulated,
        status=DeviceStatus.BUSY_OUTSIDE if busy else DeviceStatus.AVAILABLE,
        reason=event.busy_outside or "",
        node=event.node,
        mig=event.mig,
        parent=event.parent,
        island=event.island,
    )
    if known is None and event.parent is not None:
        state.slices[event.parent] = (*state.slices.get(event.parent, ()), event.device)
    with fairness.weighed_again(state, event.device, event.at):
        state.devices[event.device] = device
    if state.booked and known is not None and known.status is not DeviceStatus.AVAILABLE:
        note_change(state, (event.device,), event.at)


def device_lost(state: State, event: DeviceLost) -> None:
    device = _known_device(state, event)
    status = DeviceStatus.MISSING if event.missing else DeviceStatus.LOST
    state.devices[device.id] = replace(device, status=status, reason=event.reason)


def device_busy_outside(state: State, event: DeviceBusyOutside) -> None:
    device = _known_device(state, event)
    state.devices[device.id] = replace(
        device, status=DeviceStatus.BUSY_OUTSIDE, reason=event.reason
    )


def _known_device(state: State, event: DeviceLost | DeviceBusyOutside) -> Device:
    device = state.devices.get(event.device)
    if device is None:
        refuse(event, "this GPU was never seen")
    return device


def dispatch_held(state: State, event: DispatchHeld) -> None:
    state.held = event.reason


def dispatch_resumed(state: State, event: DispatchResumed) -> None:
    state.held = None
    if state.booked:
        note_change(state, tuple(state.booked), event.at)


def fair_share_set(state: State, event: FairShareSet) -> None:
    if not (0 < event.half_life_s < float("inf") and 0 <= event.core_weight < float("inf")):
        refuse(event, "use fades in a finite time, and a core weighs something")
    fairness.reweigh(state, event.at, event.half_life_s, event.core_weight)


def drain_started(state: State, event: DrainStarted) -> None:
    state.drained[event.node] = event.reason


def drain_ended(state: State, event: DrainEnded) -> None:
    state.drained.pop(event.node, None)


def agent_connected(state: State, event: AgentConnected) -> None:
    state.agents.setdefault(event.owner, event.at)


def agent_lost(state: State, event: AgentLost) -> None:
    state.agents.pop(event.owner, None)


def tick(_state: State, _event: Tick) -> None:
    """Time itself is folded for every event."""
