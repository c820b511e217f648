"""The agent: puts the parts together and looks after what nobody asks for."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Final

from workbench.agent.controller_link import ControllerLink
from workbench.agent.followers import Doorbell, Followers
from workbench.agent.jobs import Job, Jobs
from workbench.agent.kernels import Kernels
from workbench.agent.launcher_link import LauncherLink
from workbench.agent.log_file import write_to_log
from workbench.agent.options import Options
from workbench.agent.output import DOORBELL
from workbench.agent.runner import Runner
from workbench.agent.server import Server
from workbench.agent.sessions import Session, Sessions
from workbench.core.errors import WorkbenchError
from workbench.protocol.messages import AgentRequest, HeldLease, LeaseEnding
from workbench.transport.connection import serve
from workbench.transport.paths import agent_socket, jobs_directory, runtime_directory

LOG: Final = logging.getLogger(__name__)
SOCKET_MODE: Final = 0o600
DETACHED_FACTOR: Final = 10.0
SESSION_GONE: Final = "its kernel has been gone for too long"


class Agent:
    """One user's agent.

    Args:
        launcher: Starts zygotes; when it is gone the agent ends.
        options: How long to wait for what.
    """

    def __init__(self, launcher: LauncherLink, options: Options) -> None:
        runtime = runtime_directory()
        self._launcher = launcher
        self._options = options
        self._jobs = Jobs(jobs_directory())
        self._sessions = Sessions(runtime, launcher)
        self._followers = Followers()
        self._controller = ControllerLink(self._held, self._is_busy, self._on_reported)
        self._doorbell_path: Path = runtime / DOORBELL
        kernels = Kernels(self._jobs, launcher, self._doorbell_path, self._controller.confirm)
        self._runner = Runner(
            self._jobs, self._sessions, kernels, self._controller, self._followers.end, options
        )
        self._server = Server(
            self._jobs, self._sessions, self._runner, self._followers, kernels, self._controller
        )
        self._idle_since = time.monotonic()

    async def run(self) -> None:
        """Serve until the launcher is gone or nobody has needed the agent for long."""
        self._jobs.load()
        for job in self._jobs:
            if job.ending is None and job.opening is not None:
                self._sessions.know(job.opening)
        self._runner.adopt()
        doorbell = Doorbell(
            self._doorbell_path, self._jobs, self._followers.look, self._runner.note_ending
        )
        loop = asyncio.get_running_loop()
        loop.add_reader(doorbell.socket, doorbell.on_readable)
        await serve(agent_socket(), AgentRequest, self._server.on_connection, mode=SOCKET_MODE)
        write_to_log()
        self._launcher.say_ready()
        lives = [
            asyncio.create_task(self._launcher.is_lost.wait()),
            asyncio.create_task(self._controller.run(self._runner)),
            asyncio.create_task(self._poll()),
            asyncio.create_task(self._look_after()),
        ]
        done, _ = await asyncio.wait(lives, return_when=asyncio.FIRST_COMPLETED)
        self._sessions.end_all()
        for task in done:
            task.result()

    def _held(self) -> list[HeldLease]:
        return [
            HeldLease(lease=job.lease.lease, job=job.id, ended=job.ending, ready=job.is_ready)
            for job in self._jobs
            if job.lease is not None and not job.is_reported
        ]

    def _is_busy(self) -> bool:
        return any(job.ending is None for job in self._jobs)

    def _on_reported(self, lease: str) -> None:
        for job in self._jobs:
            if job.lease is not None and job.lease.lease == lease and job.ending is not None:
                job.mark_reported()

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._options.poll_s)
            self._followers.look_at_all()

    async def _look_after(self) -> None:
        """Return when nobody has needed the agent for `idle_s`."""
        while True:
            await asyncio.sleep(self._options.look_s)
            await self._end_lost_sessions()
            await self._drop_unknown()
            self._remove_old()
            if self._is_busy() or any(True for _ in self._sessions):
                self._idle_since = time.monotonic()
            elif time.monotonic() - self._idle_since > self._options.idle_s:
                return

    async def _end_lost_sessions(self) -> None:
        for session in self._sessions:
            away_s = time.monotonic() - session.gone_since
            if session.connections:
                continue
            if away_s < self._options.reattach_s and not (
                away_s > self._options.kernel_gone_s
                and session.is_kernel_gone
                and not self._has_jobs(session)
            ):
                continue
            if not await self._cancel_jobs_of(session):
                await self._sessions.end(session)

    def _has_jobs(self, session: Session) -> bool:
        return any(
            job.ending is None
            and job.opening is not None
            and job.opening.session == session.opening.session
            for job in self._jobs
        )

    async def _cancel_jobs_of(self, session: Session) -> bool:
        """Cancel what is not detached and not followed; True while the session has jobs."""
        left = False
        for job in self._jobs:
            if job.opening is None or job.opening.session != session.opening.session:
                continue
            if job.ending is not None:
                continue
            left = True
            if not job.detach and not self._followers.has(job.id) and job.stop is None:
                try:
                    await self._controller.cancel(job.id, SESSION_GONE)
                except WorkbenchError as error:
                    LOG.info("job %s is not cancelled yet: %s", job.id, error)
        return left

    async def _drop_unknown(self) -> None:
        """Drop jobs that were staged and never granted, and that the controller does not have."""
        limit = time.time() - self._options.staged_s
        old = [job for job in self._jobs if job.lease is None and job.staged_unix_s < limit]
        for stray in self._jobs.strays(self._options.staged_s):
            self._jobs.discard(stray)
        if not old:
            return
        try:
            live = await self._controller.live_jobs()
        except WorkbenchError:
            return  # Asked again; a queue that nobody knows is not empty.
        for job in old:
            if job.id not in live and job.lease is None:
                self._drop(job)

    def _drop(self, job: Job) -> None:
        job.ending = LeaseEnding(outcome="expired", detail="the controller does not know this job")
        self._followers.end(job)
        self._jobs.discard(job.id)

    def _remove_old(self) -> None:
        """Remove ended jobs by age and by number; detached ones, with results to fetch, last."""
        for detach, factor in ((False, 1.0), (True, DETACHED_FACTOR)):
            over = [job for job in self._jobs if job.is_reported and job.detach is detach]
            ages = sorted((time.time() - job.ended_unix_s, job.id) for job in over)
            for place, (age_s, job) in enumerate(ages):
                is_one_too_many = place >= self._options.keep_jobs and age_s > self._options.fetch_s
                if is_one_too_many or age_s > factor * self._options.keep_s:
                    self._jobs.discard(job)
