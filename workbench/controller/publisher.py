"""Pushes `Status` to those who watch: on every change and sample, at most ten times a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from workbench.core.model import Uid
from workbench.protocol.messages import JobView, Status
from workbench.transport.connection import Connection, frame_of

INTERVAL_S: Final = 0.1
BACKLOG_LIMIT_BYTES: Final = 2**20
"""A reader that has more than this unread is skipped; the next push brings it up to date."""


class Picture(Protocol):
    """The lab at one moment, to be shown to different readers."""

    def status_for(self, uid: Uid, *, job: str | None = None) -> Status:
        """Return what `uid` may see, of one job only where `job` is given."""


@dataclass(slots=True, kw_only=True)
class _Watcher:
    """A connection that watches, and what it was last shown of the job it watches."""

    job: str | None
    shown: JobView | None


class Publisher:
    """Knows who watches.

    Args:
        picture: Takes a picture of the lab now; called at most once per push.
    """

    def __init__(self, picture: Callable[[], Picture]) -> None:
        self.picture = picture
        """Takes a picture of the lab now."""
        self._watchers: dict[Connection[Any], _Watcher] = {}
        self._loop = asyncio.get_running_loop()
        self._pushing: asyncio.TimerHandle | None = None
        self._last_push_s = 0.0

    def watch(self, connection: Connection[Any], job: str | None) -> Status:
        """Push to `connection` from now on, and return what it sees now.

        Args:
            connection: A client's.
            job: Push only when this job changes; None for everything.
        """
        status = self.picture().status_for(Uid(connection.peer.uid), job=job)
        self._watchers[connection] = _Watcher(job=job, shown=_only_job(status))
        return status

    def forget(self, connection: Connection[Any]) -> None:
        """Push to `connection` no longer."""
        self._watchers.pop(connection, None)

    def on_change(self) -> None:
        """Push soon; changes that come close together are pushed once."""
        if self._pushing is None and self._watchers:
            when = max(self._loop.time(), self._last_push_s + INTERVAL_S)
            self._pushing = self._loop.call_at(when, self._push)

    def close(self) -> None:
        """Push nothing any more."""
        if self._pushing is not None:
            self._pushing.cancel()
        self._watchers.clear()

    def _push(self) -> None:
        self._pushing = None
        self._last_push_s = self._loop.time()
        picture = self.picture()
        everything: dict[Uid, bytes] = {}
        for connection, watcher in self._watchers.items():
            if connection.backlog_bytes > BACKLOG_LIMIT_BYTES:
                continue
            uid = Uid(connection.peer.uid)
            if watcher.job is not None:
                status = picture.status_for(uid, job=watcher.job)
                if (view := _only_job(status)) != watcher.shown:
                    watcher.shown = view
                    connection.send(0, status)
                continue
            if uid not in everything:
                everything[uid] = frame_of(0, picture.status_for(uid))
            connection.send_frame(everything[uid])


def _only_job(status: Status) -> JobView | None:
    return next(iter(status.jobs or status.ended), None)
