"""Fixtures for tests of the command line: real commands against a real controller."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest_asyncio

from tests.controller.conftest import place
from tests.controller.running import PATIENCE_S, Place
from workbench.frontends.cli.tables import WIDTH

__all__ = ["place"]


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return msgspec.json.decode(self.out)


class CommandLine:
    """Runs `workbench` in a place; no line may be wider than 80 columns, nor a traceback shown."""

    def __init__(self, place: Place) -> None:
        self.place = place

    async def __call__(self, *words: str) -> Said:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "workbench.frontends.cli",
            *words,
            env=self.place.env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        said = Said(code=process.returncode or 0, out=out.decode(), err=err.decode())
        assert "Traceback" not in said.err, said.err
        if "--json" not in words:
            assert [line for line in said.out.splitlines() if len(line) > WIDTH] == []
        return said


@pytest_asyncio.fixture
async def workbench(place: Place) -> AsyncIterator[CommandLine]:
    """The command; whatever it started has ended afterwards."""
    command = CommandLine(place)
    yield command
    place.env.pop("WORKBENCH_CONTROLLER", None)
    await command("down", "--force")
