"""Launcher, shim and keeper need nothing that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import workbench


@pytest.mark.parametrize("module", ["launcher", "shim", "keeper"])
def test_it_starts_without_any_installed_package(module: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(workbench.__file__).parents[1])}
    command = [sys.executable, "-S", "-P", "-c", f"import workbench.agent.{module}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
