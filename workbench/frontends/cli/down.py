"""`workbench down`: stop your own controller and your agent. Works across protocol versions."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import struct
from pathlib import Path
from typing import Final

from workbench.client import (
    PeerError,
    UserError,
    WorkbenchError,
    agent_socket,
    controller_place,
)
from workbench.client.stopped import note_stop
from workbench.frontends.cli.connecting import controller
from workbench.frontends.cli.printing import print_json, print_lines

PATIENCE_S: Final = 15.0
_LAUNCHER: Final = b"workbench.agent.launcher"
_RUNNING: Final = frozenset({"starting", "running", "stopping"})
_CREDENTIALS: Final = struct.Struct("iII")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take `--force`."""
    parser.add_argument("--force", action="store_true", help="also while jobs of yours run")


async def run(options: argparse.Namespace) -> int:
    """Stop agent and controller, in this order: an agent would start its controller again.

    Raises:
        UserError: Jobs of yours run.
        PeerError: A process does not end.
    """
    if not options.force:
        await _refuse_while_jobs_run()
    place = controller_place()
    note_stop()
    stopped = {}
    agent = _server_of(agent_socket())
    if agent is not None:
        stopped["agent"] = agent
        await _end("agent", agent, signalled=_launcher_of(agent) or agent)
    own = None if place.lab else _server_of(place.socket)
    if own is not None:
        stopped["controller"] = own
        await _end("controller", own, signalled=own)
    if options.json:
        print_json(stopped)
    else:
        print_lines([f"stopped your {name}, pid {pid}" for name, pid in stopped.items()])
        print_lines([] if stopped else ["nothing of yours runs"])
        print_lines(["the lab's controller goes on"] if place.lab else [])
    return 0


async def _refuse_while_jobs_run() -> None:
    try:
        async with controller() as client:
            status = await client.status()
    except WorkbenchError:
        return  # None runs, or one of another version, which this very command is to stop.
    running = [job.id[:8] for job in status.jobs if job.mine and job.state in _RUNNING]
    if running:
        raise UserError(
            f"jobs of yours run: {', '.join(running)}",
            next_step="Wait for them, cancel them, or use --force: they go on, and the next "
            "`workbench up` takes them up again",
        )


def _server_of(path: Path) -> int | None:
    """Return the pid of this user's process that listens on `path`; None where none does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return None
        raw = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return int(pid) if uid == os.getuid() else None


def _launcher_of(agent: int) -> int | None:
    """Return the pid of the agent's launcher, which would start the agent again."""
    try:
        stat = Path(f"/proc/{agent}/stat").read_text(encoding="ascii", errors="replace")
        parent = int(stat.rpartition(")")[2].split()[1])
        line = Path(f"/proc/{parent}/cmdline").read_bytes()
    except OSError:
        return None
    return parent if _LAUNCHER in line.split(b"\0") else None


async def _end(name: str, pid: int, *, signalled: int) -> None:
    """Have `pid` end by sending SIGTERM to `signalled`, and wait until it is gone.

    The handles make a pid that is used again harmless.
    """
    gone = asyncio.Event()
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as handles:
        try:
            handle = _open_pid(handles, pid)
            signal.pidfd_send_signal(_open_pid(handles, signalled), signal.SIGTERM)
        except ProcessLookupError:
            return
        loop.add_reader(handle, gone.set)
        handles.callback(loop.remove_reader, handle)
        try:
            await asyncio.wait_for(gone.wait(), PATIENCE_S)
        except TimeoutError as error:
            raise PeerError(
                f"your {name} (pid {pid}) has not ended within {PATIENCE_S:.0f} s",
                next_step=f"Look at its log, or run `kill -9 {pid}`; your jobs go on",
            ) from error


def _open_pid(handles: contextlib.ExitStack, pid: int) -> int:
    handle = os.pidfd_open(pid)
    handles.callback(os.close, handle)
    return handle
