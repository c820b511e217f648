"""Fixtures for every test that needs fake GPUs: `nvml_stub`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stand_ins.build import build
from tests.stand_ins.world import StubWorld


@pytest.fixture(scope="session")
def stub_libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the built stand-ins; put it on LD_LIBRARY_PATH."""
    return build(tmp_path_factory.mktemp("stand-ins"))


@pytest.fixture
def nvml_stub(stub_libraries: Path, tmp_path: Path) -> StubWorld:
    """A scripted world without any card yet: add `.env` to a child's environment."""
    return StubWorld(stub_libraries, tmp_path / "nvml-script.txt")
