"""The jobs that this agent holds: one directory each, from staging to the last report."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from workbench.agent.errors import NotComplete, NotHere, ProtocolMismatch, StillRunning
from workbench.agent.keeper import KERNEL
from workbench.agent.lease import Lease, read_lease
from workbench.agent.process import ProcessId, boot_id
from workbench.protocol.endings import ending_from
from workbench.protocol.job_files import (
    ENDED,
    OUTPUT,
    SHIM,
    read_json,
    read_spec,
    write_json,
)
from workbench.protocol.messages import PROTOCOL, LeaseEnding, OpenSession

STAGED: Final = "staged.json"
"""The agent's: which session a job belongs to and how to run it without that session."""
REPORTED: Final = "reported"
"""The agent's: the controller knows how this job ended."""
LOG: Final = logging.getLogger(__name__)
_ID: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """One job.

    Attributes:
        opening: What the session said of itself when the job was staged; None for a kernel's job.
        detach: It goes on without its session.
        kept_s: Of a kernel's job: after so long the units are given back that no kernel took.
        lease: None until it is granted.
        shim: None until it is forked.
        ending: None until nobody of its tree is left.
        is_reported: The controller knows `ending`.
        stop: How it is to be told that it was stopped; None where it is not to be.
        is_interrupted: Its owner interrupted it before there was a shim that could hear it.
        running: Starts it and watches it to its end.
    """

    id: str
    directory: Path
    opening: OpenSession | None
    detach: bool
    staged_unix_s: float
    kept_s: float | None = None
    lease: Lease | None = None
    shim: ProcessId | None = None
    ending: LeaseEnding | None = None
    is_reported: bool = False
    stop: LeaseEnding | None = None
    is_interrupted: bool = False
    running: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def output_bytes(self) -> int:
        """The size of its output now."""
        try:
            return (self.directory / OUTPUT).stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def ended_unix_s(self) -> float:
        """When it ended; when it was staged, where no record tells."""
        try:
            return (self.directory / ENDED).stat().st_mtime
        except FileNotFoundError:
            return self.staged_unix_s

    def recorded_shim(self) -> ProcessId | None:
        """Return the shim that has this job, as it wrote itself down; None before it did.

        One from before the host's restart is returned as a process that cannot exist.
        """
        record = read_json(self.directory / SHIM)
        if record is None:
            return None
        start_ticks = record["start_ticks"] if record["boot_id"] == boot_id() else -1
        return ProcessId(pid=record["pid"], start_ticks=start_ticks)

    def recorded_ending(self) -> LeaseEnding | None:
        """Return how the job ended, as its shim or an agent wrote it down."""
        record = read_json(self.directory / ENDED)
        return None if record is None else ending_from(record)

    def kernel_record(self) -> dict[str, Any] | None:
        """Return what `kernel.json` says of a kernel's job; None before anybody took it."""
        return read_json(self.directory / KERNEL)

    @property
    def is_ready(self) -> bool:
        """Whether this is a kernel's job and no kernel has started yet."""
        if self.kept_s is None:
            return False
        record = self.kernel_record()
        return record is None or record["kernel"] is None

    def mark_reported(self) -> None:
        """Remember that the controller knows how it ended."""
        self.is_reported = True
        if self.directory.exists():
            (self.directory / REPORTED).touch(mode=0o600)

    def forget_environment(self) -> None:
        """Drop the kernel's environment, which may hold secrets: an ended job needs it no more."""
        if self.opening is None or not self.opening.env:
            return
        self.opening = msgspec.structs.replace(self.opening, env={})
        record = read_json(self.directory / STAGED)
        if record is not None:
            record["opening"]["env"] = {}
            with contextlib.suppress(OSError):  # A full disk; its directory is removed one day.
                write_json(self.directory / STAGED, record)


class Jobs:
    """All jobs of this user, by id; what is not in memory is in the directories.

    Args:
        root: The folder of the job directories.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._jobs: dict[str, Job] = {}

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    def find(self, job: str) -> Job | None:
        """Return the job, or None where it is not held here."""
        return self._jobs.get(job)

    def get(self, job: str) -> Job:
        """Return the job.

        Raises:
            NotHere: It is not held here.
        """
        found = self._jobs.get(job)
        if found is None:
            raise NotHere(f"this agent holds no job {job}", next_step="See %gpu-jobs for those")
        return found

    def load(self) -> None:
        """Read every job directory, as after a restart of the agent."""
        for directory in sorted(self._root.iterdir()):
            if _ID.fullmatch(directory.name) and (directory / STAGED).exists():
                try:
                    self._jobs[directory.name] = job = _load(directory)
                    if job.ending is not None:
                        job.forget_environment()
                except (ValueError, KeyError, TypeError) as error:
                    # A torn file must not keep the agent from all other jobs.
                    LOG.warning("job %s cannot be read: %s", directory.name, error)

    def stage(self, job: str, opening: OpenSession, *, detach: bool) -> None:
        """Take over a complete job directory; a second time changes nothing.

        Raises:
            NotComplete: There is none, or it is another job's.
            ProtocolMismatch: It was made by another version.
        """
        if job in self._jobs:
            return
        directory = self._checked(job, opening.session)
        record = {
            "detach": detach,
            "staged_unix_s": time.time(),
            "opening": msgspec.to_builtins(opening),
        }
        write_json(directory / STAGED, record)
        self._jobs[job] = _load(directory)

    def stage_kernel(self, job: str, kept_s: float) -> None:
        """Make the directory of a kernel's job; a second time changes nothing.

        Raises:
            NotComplete: That is no job id.
        """
        if job in self._jobs:
            return
        if not _ID.fullmatch(job):
            raise NotComplete(f"{job!r} is no job id; one has 32 hexadecimal digits")
        directory = self._root / job
        directory.mkdir(mode=0o700, exist_ok=True)
        record = {
            "detach": True,
            "staged_unix_s": time.time(),
            "opening": None,
            "kept_s": kept_s,
        }
        write_json(directory / STAGED, record)
        self._jobs[job] = _load(directory)

    def discard(self, job: str) -> None:
        """Forget a job that is not running and remove its directory.

        Raises:
            StillRunning: It has been granted a lease and has not ended.
        """
        found = self._jobs.get(job)
        if found is not None and found.lease is not None and found.ending is None:
            raise StillRunning(f"job {job} is running", next_step="Cancel it first")
        self._jobs.pop(job, None)
        if _ID.fullmatch(job):
            shutil.rmtree(self._root / job, ignore_errors=True)

    def strays(self, older_than_s: float) -> list[str]:
        """Return directories whose client went away before it staged them."""
        limit = time.time() - older_than_s
        return [
            directory.name
            for directory in self._root.iterdir()
            if _ID.fullmatch(directory.name)
            and directory.name not in self._jobs
            and directory.stat().st_mtime < limit
        ]

    def _checked(self, job: str, session: str) -> Path:
        if not _ID.fullmatch(job):
            raise NotComplete(f"{job!r} is no job id; one has 32 hexadecimal digits")
        directory = self._root / job
        try:
            spec = read_spec(directory)
        except (OSError, ValueError, TypeError) as error:
            raise NotComplete(f"the job directory {directory} is not complete: {error}") from error
        if spec.protocol != PROTOCOL:
            raise ProtocolMismatch(
                f"job {job} is of protocol {spec.protocol}, this agent speaks {PROTOCOL}",
                next_step="Run `workbench down` and try again",
            )
        if spec.job != job or spec.session != session:
            raise NotComplete(f"{directory} holds another job or session than the one staged")
        return directory


def _load(directory: Path) -> Job:
    record = read_json(directory / STAGED)
    assert record is not None
    job = Job(
        id=directory.name,
        directory=directory,
        opening=msgspec.convert(record["opening"], OpenSession | None),
        kept_s=record.get("kept_s"),
        detach=record["detach"],
        staged_unix_s=record["staged_unix_s"],
        lease=read_lease(directory),
        is_reported=(directory / REPORTED).exists(),
    )
    job.ending = job.recorded_ending()
    return job
