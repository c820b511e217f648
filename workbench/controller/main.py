"""The controller's command line and its life: locks, log, lab, socket, end."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workbench import __version__
from workbench.controller import teaching
from workbench.controller.errors import PlaceTaken
from workbench.controller.lab import Lab
from workbench.controller.log import LOG, open_log
from workbench.controller.place import held, lab_socket, own_socket
from workbench.controller.rules import Rules, read_rules
from workbench.controller.server import Server
from workbench.controller.service import open_lab
from workbench.core.errors import WorkbenchError
from workbench.devices.simulated import Simulation
from workbench.protocol.messages import ControllerRequest
from workbench.transport.connection import serve
from workbench.transport.paths import private_directory, state_directory

_EMBEDDED_MODE: Final = 0o600
_LAB_MODE: Final = 0o666


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says.

    Attributes:
        lab_directory: Where a lab's socket goes; None for the embedded controller.
        state_directory: Where journal and log go; None for the user's own place.
        simulation: GPUs to simulate; None for those of the controller before, or real ones.
        rules: The lab's rules for its queue; None for the defaults.
        idle_exit_s: An embedded controller that nobody uses for this long exits.
    """

    lab_directory: Path | None
    state_directory: Path | None
    simulation: Simulation | None
    rules: Path | None
    idle_exit_s: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controller until it is told to stop or, embedded, nobody uses it any more.

    Returns:
        0 after a clean end, and where an embedded one finds another already there: what was
        wanted exists. 1 where it could not start; the last line of stderr says why.
    """
    os.umask(0o077)
    try:
        options = read_options(arguments)
        asyncio.run(run(options))
    except PlaceTaken as error:
        sys.stderr.write(f"workbench.controller: {error}\n")
        return 0 if options.lab_directory is None else 1
    except WorkbenchError as error:
        sys.stderr.write(f"workbench.controller: {error}\n")
        return 1
    return 0


def read_options(arguments: Sequence[str] | None) -> Options:
    """Read the command line.

    Raises:
        UserError: `--simulate` names no GPUs.
    """
    parser = argparse.ArgumentParser(prog="workbench.controller", description=__doc__)
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--embedded", action="store_true", help="for one user (the default)")
    place.add_argument("--socket", type=Path, metavar="DIR", help="for a lab: where users connect")
    parser.add_argument("--state", type=Path, metavar="DIR", help="journal and log")
    parser.add_argument("--simulate", metavar="4xA100-SXM4-80GB", help="GPUs for teaching")
    parser.add_argument("--rules", type=Path, metavar="FILE", help="policy, quotas, bounds; TOML")
    parser.add_argument("--idle-exit", type=float, default=600.0, metavar="SECONDS")
    chosen = parser.parse_args(arguments)
    return Options(
        lab_directory=chosen.socket,
        state_directory=chosen.state,
        simulation=Simulation.parse(chosen.simulate) if chosen.simulate else None,
        rules=chosen.rules,
        idle_exit_s=chosen.idle_exit,
    )


async def run(options: Options) -> None:
    """Serve until stopped.

    Raises:
        PlaceTaken: Another controller serves here, or on this state.
        UserError: A directory or the rules cannot be used, or a lab's controller is configured.
        PeerError: The journal cannot be read.
    """
    rules = Rules() if options.rules is None else read_rules(options.rules)
    stopping = asyncio.Event()
    was_told = False

    def on_signal() -> None:
        nonlocal was_told
        was_told = True
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    lab_directory = options.lab_directory
    socket = own_socket() if lab_directory is None else lab_socket(lab_directory.absolute())
    state = (
        state_directory()
        if options.state_directory is None
        else private_directory(options.state_directory.absolute())
    )
    with contextlib.ExitStack() as locks:
        locks.enter_context(held(socket.parent))
        if state != socket.parent:
            locks.enter_context(held(state))
        open_log(state / "controller.log")
        async with open_lab(
            state,
            mode="embedded" if lab_directory is None else "lab",
            simulation=teaching.settle(state, options.simulation),
            rules=rules,
        ) as lab:
            await _serve(lab, socket, stopping, idle_exit_s=options.idle_exit_s)
            has_jobs = bool(lab.driver.state.jobs)
        if was_told and not has_jobs:
            teaching.forget(state)
        LOG.info("ended; running jobs go on")


async def _serve(lab: Lab, socket: Path, stopping: asyncio.Event, *, idle_exit_s: float) -> None:
    server = Server(lab)
    is_embedded = lab.view.mode == "embedded"
    listener = await serve(
        socket,
        ControllerRequest,
        server.on_connection,
        mode=_EMBEDDED_MODE if is_embedded else _LAB_MODE,
    )
    LOG.info("serves on %s, pid %d, gpu-workbench %s", socket, os.getpid(), __version__)
    idling = asyncio.create_task(
        _stop_when_idle(lab, server, stopping, idle_exit_s=idle_exit_s if is_embedded else None)
    )
    try:
        await stopping.wait()
    finally:
        idling.cancel()
        listener.close()
        socket.unlink(missing_ok=True)
        await server.close()


async def _stop_when_idle(
    lab: Lab, server: Server, stopping: asyncio.Event, *, idle_exit_s: float | None
) -> None:
    """Stop once nobody has been connected and no job live for `idle_exit_s`; None is never."""
    if idle_exit_s is None:
        return
    loop = asyncio.get_running_loop()
    used_s = loop.time()
    while loop.time() < used_s + idle_exit_s:
        await asyncio.sleep(min(1.0, idle_exit_s / 4))
        if server.connected or lab.driver.state.jobs:
            used_s = loop.time()
    LOG.info("nobody has used this controller for %.0f s", idle_exit_s)
    stopping.set()
