"""Labs of one user with real processes."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.agent.lab import OPTIONS, Lab, MakeLab


@contextlib.contextmanager
def a_place() -> Iterator[Path]:
    """A short folder, since socket paths are limited; the environment points to it."""
    place = Path(tempfile.mkdtemp(prefix="wb-"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "WORKBENCH_CONTROLLER"):
            patch.setenv(name, str(place))
        yield place
    shutil.rmtree(place, ignore_errors=True)


async def _lab(place: Path, *options: str) -> AsyncIterator[Lab]:
    lab = Lab(place, (*OPTIONS, *options))
    try:
        yield lab
    finally:
        lab.end()
        await lab.close()
        assert lab.controller.strange == []


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def lab() -> AsyncIterator[Lab]:
    """One running lab for all tests of a module that leave it as it is."""
    with a_place() as place:
        async for lab in _lab(place):
            await lab.start()
            yield lab


@pytest_asyncio.fixture
async def make_lab() -> AsyncIterator[MakeLab]:
    """Makes a running lab that the test may break; options go to the launcher."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(*options: str, **settings: Any) -> Lab:
            place = stack.enter_context(a_place())
            lab = await stack.enter_async_context(
                contextlib.asynccontextmanager(_lab)(place, *options)
            )
            for name, value in settings.items():
                setattr(lab, name, value)
            await lab.start()
            return lab

        yield make
