"""`workbench up`: start your controller and your agent."""

from __future__ import annotations

import argparse

from workbench.client import AgentClient, ControllerClient, UserError, controller_place
from workbench.client.controller import start_embedded
from workbench.client.simulation import check_simulation
from workbench.client.stopped import resume
from workbench.frontends.cli.checks.places import directory_checks
from workbench.frontends.cli.checks.verdict import Verdict
from workbench.frontends.cli.printing import print_json, print_lines
from workbench.protocol.messages import ControllerView, Status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take `--simulate`."""
    parser.add_argument(
        "--simulate",
        metavar="4xA100-SXM4-80GB",
        help="give your own lab simulated GPUs, for teaching; jobs on them run on the CPU",
    )


async def run(options: argparse.Namespace) -> int:
    """Start what does not run yet, and say what runs.

    Raises:
        UserError: Simulated GPUs are asked for and the running controller has none, or a directory
            cannot be used.
        PeerError: Something does not come up.
    """
    _check_directories()
    if options.simulate is not None:
        check_simulation(options.simulate)
        await _start_simulated(options.simulate)
    resume()
    client = await ControllerClient.connect()
    try:
        status = await client.status()
    finally:
        await client.close()
    if options.simulate is not None:
        _check_simulates(status, options.simulate)
    view = status.controller
    await (await AgentClient.connect()).close()
    if options.json:
        print_json({"controller": view, "agent": "running"})
    else:
        print_lines([_said(view), "your agent runs"])
    return 0


def _check_directories() -> None:
    """Refuse here what would end controller or agent in the middle of their start."""
    for check in directory_checks():
        if check.verdict is Verdict.PROBLEM:
            raise UserError(check.message, next_step=check.next_step)


async def _start_simulated(simulation: str) -> None:
    place = controller_place()
    if place.lab:
        raise UserError(
            f"the lab's controller (named by {place.named_by}) has real devices",
            next_step="Unset WORKBENCH_CONTROLLER to simulate on your own",
        )
    await start_embedded(place, "--simulate", simulation)


def _check_simulates(status: Status, simulation: str) -> None:
    """Refuse where a controller ran already that has other devices."""
    names = [device.name for device in status.sample.devices] if status.sample else []
    has = f"{len(names)}x{names[0]}" if status.controller.simulated and names else "real devices"
    if has != simulation:
        raise UserError(
            f"your controller runs already, with {has}, not {simulation}",
            next_step="Run `workbench down` first",
        )


def _said(view: ControllerView) -> str:
    whose = "the lab's" if view.mode == "lab" else "your own"
    simulated = ", SIMULATED" if view.simulated else ""
    return f"{whose} controller runs on {view.hostname}, pid {view.pid}{simulated}"
