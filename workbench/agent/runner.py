"""Starts granted jobs, watches their shims and says how they ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from workbench.agent.jobs import Job, Jobs
from workbench.agent.kernels import Kernels
from workbench.agent.lease import Lease, create_lease
from workbench.agent.options import Options
from workbench.agent.process import ProcessId, open_pidfd, send_signal
from workbench.agent.sessions import Sessions
from workbench.agent.tree import Ending, Tree
from workbench.core.errors import WorkbenchError
from workbench.protocol.endings import ending_from
from workbench.protocol.job_files import ENDED, STOP, write_json
from workbench.protocol.messages import GrantPush, LeaseEnding, StopPush

LOG: Final = logging.getLogger(__name__)
NOT_STAGED: Final = LeaseEnding(outcome="lost", detail="its files are gone from this machine")
UNWATCHED: Final = "the process that watches over the job was killed, so the job was ended"
INTERRUPTED: Final = LeaseEnding(outcome="cancelled", detail="interrupted by its owner")


class Reports(Protocol):
    """Where the runner reports to: the controller, through `ControllerLink`."""

    def confirm(self, lease: str) -> None:
        """The lease's job runs."""

    def over(self, lease: str, ending: LeaseEnding) -> None:
        """Nobody is left in the lease's tree."""


class Runner:
    """Carries out grants and stops; each may come any number of times.

    Args:
        jobs: The jobs held here; a grant for any other is answered as lost.
        sessions: Whose zygotes fork the shims.
        kernels: Forks the keepers of kernels' leases.
        reports: Takes confirmations and endings.
        on_ended: Called with each job that has ended.
        options: The grace time.
    """

    def __init__(
        self,
        jobs: Jobs,
        sessions: Sessions,
        kernels: Kernels,
        reports: Reports,
        on_ended: Callable[[Job], None],
        options: Options,
    ) -> None:
        self._jobs = jobs
        self._sessions = sessions
        self._kernels = kernels
        self._reports = reports
        self._on_ended = on_ended
        self._options = options
        self._told: dict[str, LeaseEnding] = {}

    def adopt(self) -> None:
        """Take up the leases that an earlier agent left behind."""
        for job in self._jobs:
            if job.lease is None:
                continue
            if job.ending is None:
                self._run(job)
            elif not job.is_reported:
                self._reports.over(job.lease.lease, job.ending)

    def grant(self, grant: GrantPush) -> None:
        """Start a staged job under this lease, once."""
        lease = Lease(
            lease=grant.lease,
            job=grant.job,
            gpus=grant.gpus,
            cores=grant.cores,
            simulated=grant.simulated,
            grace_s=self._options.grace_s,
            gpu_memory_bytes=grant.gpu_memory_bytes,
        )
        job = self._take(lease)
        if job is None:
            return
        if job.ending is not None:
            self._reports.over(lease.lease, job.ending)
        elif job.shim is not None:
            self._confirm(job)
        else:
            self._run(job)

    def stop(self, stop: StopPush) -> None:
        """End a lease's tree, also one that has not started."""
        nothing = Lease(
            lease=stop.lease,
            job=stop.job,
            gpus=[],
            cores=1,
            simulated=False,
            grace_s=self._options.grace_s,
        )
        job = self._take(nothing)
        if job is None:
            return
        job.stop = LeaseEnding(outcome=stop.outcome, detail=stop.reason)
        if job.ending is not None:
            self._reports.over(stop.lease, job.ending)
        elif job.shim is not None:
            _stop_shim(job, job.shim)
        else:
            self._run(job)

    def interrupt(self, job: Job) -> None:
        """Raise KeyboardInterrupt in the running statement.

        A job whose shim is not forked yet is interrupted as soon as it is; one that was not
        granted by now never starts.
        """
        if job.shim is None:
            job.is_interrupted = True
        elif job.ending is None:
            send_signal(job.shim, signal.SIGINT)

    def note_ending(self, job: str, record: dict[str, Any]) -> None:
        """Keep what a shim told that could not write it down: the disk is full."""
        self._told[job] = ending_from(record)

    def _take(self, lease: Lease) -> Job | None:
        """Write the lease down for its job; None, and a report, where that cannot be."""
        job = self._jobs.find(lease.job)
        if job is None:
            self._reports.over(lease.lease, NOT_STAGED)
            return None
        try:
            job.lease = job.lease or create_lease(job.directory, lease)
        except OSError as error:
            detail = f"its lease cannot be written down: {error.strerror}"
            self._reports.over(lease.lease, LeaseEnding(outcome="failed", detail=detail))
            return None
        if job.lease.lease != lease.lease:
            detail = f"it was started before, under lease {job.lease.lease}"
            self._reports.over(lease.lease, LeaseEnding(outcome="lost", detail=detail))
            return None
        return job

    def _run(self, job: Job) -> None:
        if job.running is None:
            job.running = asyncio.create_task(self._run_to_end(job))

    async def _run_to_end(self, job: Job) -> None:
        try:
            await self._start(job)
            if job.shim is not None:
                await self._watch(job)
        except WorkbenchError as error:
            self._end(job, LeaseEnding(outcome="failed", detail=str(error)))
        except Exception as error:
            LOG.exception("a bug in running job %s", job.id)
            self._end(job, LeaseEnding(outcome="failed", detail=f"the agent has a bug: {error!r}"))

    async def _start(self, job: Job) -> None:
        """Have a shim for the job: the one that has it already, or a new one."""
        assert job.lease is not None
        shim = job.recorded_shim()
        if shim is None:
            never = job.stop or (INTERRUPTED if job.is_interrupted else None)
            if never is not None:
                self._end(job, never)
                return
            shim = await self._fork(job)
        self._use(job, shim)
        self._confirm(job)
        if job.stop is not None:
            _stop_shim(job, shim)

    def _use(self, job: Job, shim: ProcessId) -> None:
        job.shim = shim
        if job.is_interrupted:
            send_signal(shim, signal.SIGINT)

    async def _fork(self, job: Job) -> ProcessId:
        if job.opening is None:
            return await self._kernels.fork(job)
        return await self._sessions.know(job.opening).fork(job.directory)

    def _confirm(self, job: Job) -> None:
        # A kernel's job runs when its kernel does: until then its units are only ready.
        if job.lease is not None and not job.is_ready:
            self._reports.confirm(job.lease.lease)

    async def _watch(self, job: Job) -> None:
        assert job.shim is not None
        while True:
            await _gone(job.shim)
            recorded = job.recorded_shim()
            if recorded is not None and recorded != job.shim:
                self._use(job, recorded)  # Ours came second and ended; this one has the job.
                continue
            ending = job.recorded_ending() or self._told.pop(job.id, None)
            if ending is not None:
                break
            # A kernel goes on under another keeper.
            again = await self._kernels.fork_again(job) if job.kept_s is not None else None
            if again is None:
                await self._end_rest(job, job.shim)
                ending = LeaseEnding(outcome="lost", detail=UNWATCHED)
                break
            job.shim = again
        self._end(job, ending)

    async def _end_rest(self, job: Job, shim: ProcessId) -> None:
        assert job.lease is not None
        if shim.start_ticks < 0:
            return  # From before the host's restart; nobody can be left.
        rest = Ending(Tree(leader=shim, mark=job.lease.mark), self._options.grace_s)
        while not rest.step():  # noqa: ASYNC110  (no event says that a stranger has ended)
            await asyncio.sleep(rest.wait_s())

    def _end(self, job: Job, ending: LeaseEnding) -> None:
        assert job.lease is not None
        job.ending = ending
        if job.recorded_ending() is None:
            record = {
                "outcome": ending.outcome,
                "detail": ending.detail,
                "code": None,
                "ended_unix_s": time.time(),
            }
            try:
                write_json(job.directory / ENDED, record)
            except OSError as error:
                LOG.warning("the ending of job %s cannot be written: %s", job.id, error.strerror)
        self._reports.over(job.lease.lease, ending)
        job.forget_environment()
        self._on_ended(job)


def _stop_shim(job: Job, shim: ProcessId) -> None:
    """Have the shim end its tree; it tells the reason that it finds beside the job."""
    assert job.stop is not None
    with contextlib.suppress(OSError):  # On a full disk the reason is lost, the stop is not.
        write_json(job.directory / STOP, msgspec.to_builtins(job.stop))
    send_signal(shim, signal.SIGTERM)


async def _gone(process: ProcessId) -> None:
    """Wait until that very process has ended."""
    descriptor = open_pidfd(process)
    if descriptor is None:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
