"""Fixtures for tests of the controller."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.controller.running import Place
from tests.stand_ins.fixtures import nvml_stub, stub_libraries

__all__ = ["nvml_stub", "place", "stub_libraries"]


@pytest_asyncio.fixture
async def place() -> AsyncIterator[Place]:
    """A place for one controller; its path is short, as a socket's must be."""
    with tempfile.TemporaryDirectory(prefix="wb-") as root:
        one = Place(Path(root))
        try:
            yield one
        finally:
            await one.close()
