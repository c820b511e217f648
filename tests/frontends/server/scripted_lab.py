"""A Jupyter server extension whose controller reads its lines from a file.

The file, named by `SCRIPTED_LAB`, holds the JSON of the `Status` or `Failure` to tell. Cancelling
moves the job to the ended ones in that file, as a controller would.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from workbench.client import PeerError, UserError
from workbench.frontends.server import add_routes
from workbench.protocol.messages import Failure, Status


class ScriptedController:
    def __init__(self, script: Path) -> None:
        self._script = script

    async def watch(self) -> AsyncIterator[Status]:
        told = b""
        while True:
            line = self._script.read_bytes()
            if line != told:
                told = line
                yield self._read()
            await asyncio.sleep(0.02)

    async def cancel(self, job: str) -> None:
        status = self._read()
        ended = [view for view in status.jobs if view.id == job and view.mine]
        if not ended:
            raise UserError(f"there is no job {job} of yours", next_step="Look at `workbench jobs`")
        over = msgspec.structs.replace(
            ended[0], state="ended", outcome="cancelled", ended_unix_s=ended[0].submitted_unix_s
        )
        rest = [view for view in status.jobs if view.id != job]
        tell(self._script, msgspec.structs.replace(status, jobs=rest, ended=[over, *status.ended]))

    async def close(self) -> None:
        pass

    def _read(self) -> Status:
        said = msgspec.json.decode(self._script.read_bytes(), type=Status | Failure)
        if isinstance(said, Failure):
            raise PeerError(said.message, next_step=said.next_step)
        return said


def tell(script: Path, said: Status | Failure) -> None:
    """Write what the controller says next, in one step."""
    draft = script.with_suffix(".draft")
    draft.write_bytes(msgspec.json.encode(said))
    draft.replace(script)


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    return [{"module": "tests.frontends.server.scripted_lab"}]


def _load_jupyter_server_extension(server: Any) -> None:
    controller = ScriptedController(Path(os.environ["SCRIPTED_LAB"]))

    async def connect() -> ScriptedController:
        return controller

    add_routes(server, connect)
