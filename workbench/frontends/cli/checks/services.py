"""Controller, agent, and the GPUs as the controller sees them. Nothing is started."""

from __future__ import annotations

from typing import Final

from workbench.client import (
    AgentClient,
    NobodyListens,
    PeerError,
    WorkbenchError,
    controller_place,
)
from workbench.frontends.cli.checks.verdict import Check, Verdict
from workbench.frontends.cli.connecting import controller
from workbench.protocol.messages import Status
from workbench.protocol.telemetry import NvmlStatus

_FINE: Final = frozenset({NvmlStatus.OK, NvmlStatus.NOT_IN_USE})


async def service_checks() -> list[Check]:
    """Look at who serves."""
    try:
        async with controller() as client:
            status = await client.status()
    except NobodyListens as error:
        return [_no_controller(error), _gpus(None), await _agent()]
    except WorkbenchError as error:
        return [_problem("controller", error), _gpus(None), await _agent()]
    return [_controller(status), _gpus(status), await _agent()]


def _no_controller(error: PeerError) -> Check:
    if controller_place().lab:
        return _problem("controller", error)
    message = "none runs; the first scheduled cell or `workbench up` starts your own"
    return Check(name="controller", verdict=Verdict.OK, message=message)


def _controller(status: Status) -> Check:
    view = status.controller
    whose = "the lab's" if view.mode == "lab" else "your own"
    simulated = ", SIMULATED" if view.simulated else ""
    said = f"{whose} answers: pid {view.pid} of uid {view.uid} on {view.hostname}, gpu-workbench "
    message = f"{said}{view.software}, protocol {view.protocol}{simulated}"
    if status.notices:
        notices = "; ".join(status.notices)
        return Check(
            name="controller", verdict=Verdict.PROBLEM, message=f"{message}. It says: {notices}"
        )
    return Check(name="controller", verdict=Verdict.OK, message=message)


def _gpus(status: Status | None) -> Check:
    """Look at NVML, as the controller does: a GPU is what the controller can lease."""
    if status is None or status.sample is None:
        return Check(
            name="gpus",
            verdict=Verdict.NOTE,
            message="not known: no controller has told of them",
            next_step="Run `workbench up`, then `workbench doctor` again",
        )
    nvml, devices = status.sample.nvml, status.sample.devices
    if nvml.state in _FINE:
        simulated = sum(device.simulated for device in devices)
        kinds = f"{len(devices)} GPUs" + (f", {simulated} of them SIMULATED" if simulated else "")
        message = f"{kinds}. {nvml.message}".removesuffix(". ")
        return Check(name="gpus", verdict=Verdict.OK, message=message, next_step=nvml.next_step)
    is_cpu_only = nvml.state is NvmlStatus.NO_LIBRARY
    return Check(
        name="gpus",
        verdict=Verdict.NOTE if is_cpu_only else Verdict.PROBLEM,
        message=nvml.message or nvml.state,
        next_step=nvml.next_step,
    )


async def _agent() -> Check:
    try:
        await (await AgentClient.connect(start=False)).close()
    except NobodyListens:
        message = "none runs; the first scheduled cell or `workbench up` starts it"
        return Check(name="agent", verdict=Verdict.OK, message=message)
    except WorkbenchError as error:
        return _problem("agent", error)
    return Check(name="agent", verdict=Verdict.OK, message="your agent answers")


def _problem(name: str, error: WorkbenchError) -> Check:
    return Check(
        name=name, verdict=Verdict.PROBLEM, message=error.message, next_step=error.next_step
    )
