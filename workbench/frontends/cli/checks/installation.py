"""Python, Workbench itself, and torch: read from metadata, nothing heavy is imported."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
from pathlib import Path
from typing import Final

import workbench
from workbench.frontends.cli.checks.verdict import Check, Verdict

DRIVER: Final = Path("/proc/driver/nvidia/version")
OLDEST_PYTHON: Final = (3, 11)
OLDEST_DRIVER: Final = {11: 450, 12: 525, 13: 580}
"""Oldest driver branch for a CUDA major version. Source: CUDA release notes, "CUDA Toolkit and
Minimum Required Driver Version for CUDA Minor Version Compatibility"."""


def installation_checks(driver: Path = DRIVER) -> list[Check]:
    """Look at Python, Workbench and torch.

    Args:
        driver: Where NVIDIA's kernel module tells its version.
    """
    return [_python(), _workbench(), _torch(driver)]


def _python() -> Check:
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        return Check(
            name="python",
            verdict=Verdict.PROBLEM,
            message=f"{version} at {sys.executable} is too old",
            next_step="Install Workbench under Python 3.11 or newer",
        )
    if sys.platform != "linux":
        return Check(
            name="python",
            verdict=Verdict.PROBLEM,
            message=f"{version} on {sys.platform}: controller and agent need Linux",
            next_step="Use Linux or WSL2",
        )
    return Check(name="python", verdict=Verdict.OK, message=f"{version} at {sys.executable}")


def _workbench() -> Check:
    place = Path(workbench.__file__).parent
    try:
        installed = importlib.metadata.version("gpu-workbench")
    except importlib.metadata.PackageNotFoundError:
        return Check(
            name="workbench",
            verdict=Verdict.NOTE,
            message=f"{workbench.__version__} at {place}, run from its sources: not installed",
            next_step="Run `pip install gpu-workbench`, or `pip install -e .` in the sources",
        )
    if installed != workbench.__version__:
        return Check(
            name="workbench",
            verdict=Verdict.PROBLEM,
            message=f"{place} is version {workbench.__version__}, but {installed} is installed",
            next_step="Run `pip install --force-reinstall gpu-workbench`",
        )
    return Check(name="workbench", verdict=Verdict.OK, message=f"{installed} at {place}")


def _torch(driver: Path) -> Check:
    try:
        distribution = importlib.metadata.distribution("torch")
    except importlib.metadata.PackageNotFoundError:
        return Check(name="torch", verdict=Verdict.OK, message="not installed in this environment")
    found = _driver_version(driver)
    version = f"torch {distribution.version}"
    cuda = _cuda_of(Path(str(distribution.locate_file("torch/version.py"))))
    if cuda is None:
        if found is None:
            message = f"{version}, built without CUDA; there is no NVIDIA driver here either"
            return Check(name="torch", verdict=Verdict.OK, message=message)
        return Check(
            name="torch",
            verdict=Verdict.PROBLEM,
            message=f"{version} is built without CUDA, and this host has NVIDIA driver {found}",
            next_step="Install a CUDA build: see https://pytorch.org/get-started/locally",
        )
    if found is None:
        message = f"{version}, built for CUDA {cuda}; no NVIDIA driver is loaded here"
        return Check(name="torch", verdict=Verdict.NOTE, message=message)
    oldest = OLDEST_DRIVER.get(int(cuda.split(".")[0]))
    if oldest is not None and int(found.split(".")[0]) < oldest:
        return Check(
            name="torch",
            verdict=Verdict.PROBLEM,
            message=f"{version} is built for CUDA {cuda}, which needs NVIDIA driver {oldest} or "
            f"newer; this host has {found}",
            next_step="Install torch for an older CUDA, or ask for a newer driver",
        )
    message = f"{version}, built for CUDA {cuda}; NVIDIA driver {found}"
    return Check(name="torch", verdict=Verdict.OK, message=message)


def _cuda_of(version_file: Path) -> str | None:
    """Return the CUDA that a torch is built for, from its `torch/version.py`, without importing."""
    try:
        text = version_file.read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r"^cuda\b[^=]*=\s*['\"]([\d.]+)", text, re.MULTILINE)
    return match[1] if match else None


def _driver_version(driver: Path) -> str | None:
    try:
        text = driver.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    match = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)\s", text)
    return match[1] if match else None
