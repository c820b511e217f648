"""The launcher as the agent sees it."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from pathlib import Path
from typing import Any

from workbench.agent.errors import CannotStart
from workbench.agent.process import ProcessId


class LauncherLink:
    """Asks the launcher for zygotes; make it with `open_link`.

    Attributes:
        is_lost: Set when the launcher is gone; then the agent has to end.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.is_lost = asyncio.Event()
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count(1)
        self._askers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    def say_ready(self) -> None:
        """Tell it that the agent serves."""
        self._send({"op": "ready"})

    async def start_zygote(
        self, *, socket: Path, log: Path, argv: list[str], env: dict[str, str]
    ) -> int:
        """Have a program run with a listening socket at `socket` and return its pid.

        Raises:
            CannotStart: It cannot be run.
        """
        answer = await self._ask(
            {"op": "zygote", "socket": str(socket), "log": str(log), "argv": argv, "env": env}
        )
        if "error" in answer:
            raise CannotStart(
                f"the session's Python cannot be started: {answer['error']}",
                next_step="Restart the kernel in an environment that exists",
            )
        pid: int = answer["pid"]
        return pid

    async def fork_keeper(self, *, directory: Path, doorbell: Path, kept_s: float) -> ProcessId:
        """Fork the keeper of a kernel's lease and return it."""
        places = {"directory": str(directory), "doorbell": str(doorbell)}
        answer = await self._ask({"op": "keeper", **places, "kept_s": kept_s})
        return ProcessId(pid=answer["pid"], start_ticks=answer["start_ticks"])

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        identity = next(self._ids)
        asker: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._askers[identity] = asker
        self._send({**request, "id": identity})
        return await asker

    def _send(self, message: dict[str, Any]) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def _read(self) -> None:
        try:
            while line := await self._reader.readline():
                answer = json.loads(line)
                self._askers.pop(answer["id"]).set_result(answer)
        except OSError:
            pass  # As the end of the stream: the launcher is gone.
        self.is_lost.set()


async def open_link(descriptor: int) -> LauncherLink:
    """Take over the socket that the launcher left at `descriptor`."""
    ours = socket.socket(fileno=descriptor)
    ours.set_inheritable(False)
    reader, writer = await asyncio.open_connection(sock=ours)
    return LauncherLink(reader, writer)
