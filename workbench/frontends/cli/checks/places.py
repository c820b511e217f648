"""Directories and sockets, and whether jobs can be kept in a cgroup or a scope of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from workbench.client import (
    UserError,
    agent_socket,
    controller_place,
    jobs_directory,
    state_directory,
)
from workbench.frontends.cli.checks.verdict import Check, Verdict
from workbench.protocol.quantities import format_bytes

LITTLE_SPACE_BYTES: Final = 100 * 2**20
CGROUP: Final = Path("/sys/fs/cgroup")
_SCOPE: Final = ("systemd-run", "--user", "--scope", "--quiet", "true")
_SCOPE_TIMEOUT_S: Final = 5.0


def place_checks() -> list[Check]:
    """Look at sockets, state, job directories and process groups."""
    return [
        _sockets(),
        _directory("state", state_directory),
        _directory("jobs", jobs_directory),
        _cgroup(),
        _scope(),
    ]


def _sockets() -> Check:
    try:
        place = controller_place()
        agent = agent_socket()
    except UserError as error:
        return _problem("sockets", error)
    message = f"controller at {place.socket} ({place.named_by}), agent at {agent}"
    return Check(name="sockets", verdict=Verdict.OK, message=message)


def _directory(name: str, directory: Callable[[], Path]) -> Check:
    try:
        path = directory()
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(bytes(4096))
        free_bytes = shutil.disk_usage(path).free
    except UserError as error:
        return _problem(name, error)
    except OSError as error:
        return Check(
            name=name,
            verdict=Verdict.PROBLEM,
            message=f"{error.filename or directory()} cannot be written: {error.strerror}",
            next_step="Free space there, or make it writable",
        )
    if free_bytes < LITTLE_SPACE_BYTES:
        return Check(
            name=name,
            verdict=Verdict.PROBLEM,
            message=f"only {format_bytes(free_bytes)} are free at {path}",
            next_step="Free space there, or set XDG_STATE_HOME and XDG_DATA_HOME elsewhere",
        )
    message = f"{path} is writable, {format_bytes(free_bytes)} free"
    return Check(name=name, verdict=Verdict.OK, message=message)


def _cgroup() -> Check:
    """A job's tree is found by session and lease id; a cgroup only makes that quicker."""
    version = "v2" if (CGROUP / "cgroup.controllers").exists() else "v1"
    if not CGROUP.is_dir():
        message = "no control groups here: jobs are found by session and lease id"
        return Check(name="cgroup", verdict=Verdict.NOTE, message=message)
    may = "may" if os.access(CGROUP, os.W_OK) else "may not"
    return Check(
        name="cgroup",
        verdict=Verdict.OK if may == "may" else Verdict.NOTE,
        message=f"{version}; you {may} make groups: jobs are found by session and lease id",
    )


def _scope() -> Check:
    if shutil.which(_SCOPE[0]) is None:
        return _no_scope("systemd-run is not installed")
    try:
        tried = subprocess.run(
            _SCOPE, capture_output=True, text=True, timeout=_SCOPE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return _no_scope(f"systemd-run did not answer within {_SCOPE_TIMEOUT_S:.0f} s")
    if tried.returncode:
        return _no_scope((tried.stderr.strip().splitlines() or ["systemd-run failed"])[-1])
    message = "systemd-run works: your agent outlives the notebook's own control group"
    return Check(name="scope", verdict=Verdict.OK, message=message)


def _no_scope(why: str) -> Check:
    return Check(
        name="scope",
        verdict=Verdict.NOTE,
        message=f"{why}: what ends the notebook server's control group ends your agent too",
    )


def _problem(name: str, error: UserError) -> Check:
    return Check(
        name=name, verdict=Verdict.PROBLEM, message=error.message, next_step=error.next_step
    )
