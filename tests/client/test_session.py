"""A kernel session that follows a job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.client import KernelSession
from workbench.client.session import Over, Printed, _directory
from workbench.protocol.job_files import ENDED, OUTPUT, write_json
from workbench.protocol.messages import Advanced, JobOver, LeaseEnding, Status
from workbench.transport.paths import jobs_directory

if TYPE_CHECKING:
    import pytest

LIMIT_S = 20.0


class SilentAgent:
    """An agent whose word that the job is over is lost."""

    async def follow(self, job: str) -> AsyncGenerator[Advanced | JobOver, None]:
        yield Advanced(job=job, size_bytes=1)
        await asyncio.Event().wait()


class SilentController:
    """A controller of which nothing is heard."""

    async def watch(self, _job: str) -> AsyncGenerator[Status, None]:
        await asyncio.Event().wait()
        yield  # type: ignore[misc]


class Session(KernelSession):
    async def agent(self) -> SilentAgent:  # type: ignore[override]
        return SilentAgent()

    async def controller(self) -> SilentController:  # type: ignore[override]
        return SilentController()


async def test_a_lost_word_that_the_job_is_over_does_not_hang_the_cell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    session = Session(modules=list)
    job = "a" * 32
    directory = jobs_directory() / job
    directory.mkdir()
    (directory / OUTPUT).write_text('{"kind": "clear", "wait": true}\n')
    write_json(directory / ENDED, {"outcome": "failed", "detail": "NameError: x", "code": 0})
    async with asyncio.timeout(LIMIT_S):
        happened = [happening async for happening in session.follow(job)]
    assert happened == [
        Printed(line={"kind": "clear", "wait": True}),
        Over(ending=LeaseEnding(outcome="failed", detail="NameError: x")),
    ]


def test_a_working_directory_that_was_removed_is_an_empty_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    assert _directory() == str(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert _directory() == ""
