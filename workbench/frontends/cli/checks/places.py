"""Directories and sockets, and whether jobs can be kept in a cgroup or a scope of their own."""

from __future__ import annotations

import os
import shutil
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
    why_no_scope,
)
from workbench.frontends.cli.checks.verdict import Check, Verdict
from workbench.protocol.quantities import format_bytes

LITTLE_SPACE_BYTES: Final = 100 * 2**20
CGROUP: Final = Path("/sys/fs/cgroup")


def place_checks() -> list[Check]:
    """Look at sockets, state, job directories and process groups."""
    return [_sockets(), *directory_checks(), _cgroup(), _scope()]


def directory_checks() -> list[Check]:
    """Look at the directories that controller and agent write to."""
    return [_directory("state", state_directory), _directory("jobs", jobs_directory)]


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
    if why := why_no_scope():
        message = f"{why}: what ends the notebook server's control group ends your agent too"
        return Check(name="scope", verdict=Verdict.NOTE, message=message)
    message = "your agent is started outside the notebook server's control group"
    return Check(name="scope", verdict=Verdict.OK, message=message)


def _problem(name: str, error: UserError) -> Check:
    return Check(
        name=name, verdict=Verdict.PROBLEM, message=error.message, next_step=error.next_step
    )
