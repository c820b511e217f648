"""Who follows which job, and how the agent learns that output has grown."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from workbench.agent.jobs import Job, Jobs
from workbench.protocol.messages import Advanced, JobOver
from workbench.transport.connection import Connection

BACKLOG_LIMIT_BYTES: Final = 2**20
_DATAGRAM_BYTES: Final = 2**16


@dataclass(slots=True, kw_only=True, eq=False)
class _Follower:
    connection: Connection[Any]
    job: Job
    told_bytes: int = 0


class Followers:
    """Pushes `Advanced` and, once, `JobOver` to whoever follows a job."""

    def __init__(self) -> None:
        self._followers: dict[str, list[_Follower]] = {}

    def add(self, connection: Connection[Any], job: Job) -> None:
        """Begin to push; a job that has ended is told at once."""
        follower = _Follower(connection=connection, job=job)
        self._followers.setdefault(job.id, []).append(follower)
        self.look(job.id)
        if job.ending is not None:
            self.end(job)

    def remove(self, connection: Connection[Any]) -> None:
        """Push no more to a connection that is gone."""
        for job, followers in list(self._followers.items()):
            self._followers[job] = [one for one in followers if one.connection is not connection]
            if not self._followers[job]:
                del self._followers[job]

    def has(self, job: str) -> bool:
        """Whether anybody follows this job."""
        return job in self._followers

    def look(self, job: str) -> None:
        """Push the output's size to followers who were told another one."""
        for follower in self._followers.get(job, ()):
            size_bytes = follower.job.output_bytes
            # A follower that does not read its pushes is told again at a later look.
            if (
                size_bytes != follower.told_bytes
                and follower.connection.backlog_bytes < BACKLOG_LIMIT_BYTES
            ):
                follower.told_bytes = size_bytes
                follower.connection.send(0, Advanced(job=job, size_bytes=size_bytes))

    def look_at_all(self) -> None:
        """Push every size that has changed: what the doorbell may have missed."""
        for job in list(self._followers):
            self.look(job)

    def end(self, job: Job) -> None:
        """Push the last size and the ending; nobody follows an ended job."""
        assert job.ending is not None
        self.look(job.id)
        for follower in self._followers.pop(job.id, ()):
            follower.connection.send(0, JobOver(job=job.id, ending=job.ending))


class Doorbell:
    """The datagram socket on which shims and homes say that there is news.

    Args:
        path: Where it is bound; a stale one is replaced.
        jobs: Only these are listened to.
        on_ring: Called with each job id once for all rings that wait.
        on_ending: Called with a job id and the ending that its shim could not write.
    """

    def __init__(
        self,
        path: Path,
        jobs: Jobs,
        on_ring: Callable[[str], None],
        on_ending: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._jobs = jobs
        self._on_ring = on_ring
        self._on_ending = on_ending
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        path.unlink(missing_ok=True)
        self.socket.bind(os.fspath(path))
        path.chmod(0o600)

    def on_readable(self) -> None:
        """Take all rings that wait."""
        rung: dict[str, None] = {}
        while True:
            try:
                news = json.loads(self.socket.recv(_DATAGRAM_BYTES))
            except BlockingIOError:
                break
            job = news["job"]
            if self._jobs.find(job) is None:
                continue
            rung[job] = None
            if "ended" in news:
                self._on_ending(job, news["ended"])
        for job in rung:
            self._on_ring(job)
