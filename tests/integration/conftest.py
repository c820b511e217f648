"""Fixtures that give a test a real lab."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.lab import Lab, lab


@pytest.fixture
def one_lab() -> Iterator[Lab]:
    """A lab in a short path (a socket's path has at most 100 bytes)."""
    with tempfile.TemporaryDirectory(prefix="wb") as root, lab(Path(root)) as one:
        yield one


@pytest.fixture(scope="module")
def shared_lab() -> Iterator[Lab]:
    """A lab that the tests of one module share; they leave its processes alone."""
    with tempfile.TemporaryDirectory(prefix="wb") as root, lab(Path(root)) as one:
        yield one
