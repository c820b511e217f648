"""Kernel jobs: Jupyter starts the kernel, so the agent only has its lease kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from workbench.agent.errors import NotHere, NotReady
from workbench.agent.jobs import Job, Jobs
from workbench.agent.keeper import KERNEL, LOOK_AGAIN
from workbench.agent.launcher_link import LauncherLink
from workbench.agent.process import ProcessId, is_alive, send_signal
from workbench.agent.threads import own_values, thread_environment
from workbench.protocol.environment import MARK
from workbench.protocol.job_files import SHIM, write_json
from workbench.protocol.messages import (
    GiveBack,
    KernelStarted,
    LeaseTaken,
    StageKernel,
    TakeKernel,
)

_NEXT: Final = "Start the kernel again: it asks for a new lease"


class Kernels:
    """Tells keepers of their kernels.

    Args:
        jobs: What is staged and runs.
        launcher: Forks the keepers.
        doorbell: The agent's doorbell, for the keepers.
        confirm: Called with the lease once a kernel has started.
    """

    def __init__(
        self,
        jobs: Jobs,
        launcher: LauncherLink,
        doorbell: Path,
        confirm: Callable[[str], None],
    ) -> None:
        self._jobs = jobs
        self._launcher = launcher
        self._doorbell = doorbell
        self._confirm = confirm

    async def fork(self, job: Job) -> ProcessId:
        """Fork a keeper for the job and return it."""
        kept_s = max(0.0, job.staged_unix_s + (job.kept_s or 0.0) - time.time())
        return await self._launcher.fork_keeper(
            directory=job.directory, doorbell=self._doorbell, kept_s=kept_s
        )

    async def fork_again(self, job: Job) -> ProcessId | None:
        """Fork another keeper in place of one that was lost, where its kernel still runs."""
        record = job.kernel_record()
        if record is None or not record["kernel"] or not is_alive(ProcessId(**record["kernel"])):
            return None
        (job.directory / SHIM).unlink(missing_ok=True)
        return await self.fork(job)

    def stage(self, message: StageKernel) -> None:
        """Hold a job for a kernel; a second time changes nothing."""
        self._jobs.stage_kernel(message.job, message.kept_s)

    def take(self, message: TakeKernel) -> LeaseTaken:
        """Announce the job's kernel and return what its lease sets.

        Raises:
            NotReady: It is not granted, given back, or another kernel has it.
        """
        job = self._job(message.job)
        record = job.kernel_record()
        if job.lease is None or job.recorded_shim() is None:
            raise NotReady(f"job {job.id} has not been granted its lease yet", next_step=_NEXT)
        if job.ending is not None or (record is not None and record["given_back"]):
            raise NotReady(f"the lease of job {job.id} is over", next_step=_NEXT)
        if record is not None and not message.again:
            raise NotReady(f"another kernel has the lease of job {job.id}", next_step=_NEXT)
        taken = 1 if record is None else record["taken"] + 1
        _tell(job, taken=taken, kernel=None, given_back=False)
        threads = thread_environment(own_values(message.env), job.lease.cores)
        return LeaseTaken(environment={**threads, **job.lease.environment(), MARK: job.lease.mark})

    def started(self, message: KernelStarted) -> None:
        """Have the kernel watched, and report that the job runs.

        Raises:
            NotReady: Its lease is over, or nobody has taken it.
        """
        job = self._job(message.job)
        record = job.kernel_record()
        if job.ending is not None or record is None or record["given_back"]:
            raise NotReady(f"the lease of job {job.id} is not taken", next_step=_NEXT)
        kernel = {"pid": message.pid, "start_ticks": message.start_ticks}
        _tell(job, taken=record["taken"], kernel=kernel, given_back=False)
        assert job.lease is not None
        if job.recorded_shim() is not None:
            self._confirm(job.lease.lease)

    def give_back(self, message: GiveBack) -> None:
        """Have the lease given back; on an ended job this changes nothing."""
        job = self._job(message.job)
        if job.ending is None and job.lease is not None:
            record = job.kernel_record() or {"taken": 0, "kernel": None}
            _tell(job, taken=record["taken"], kernel=record["kernel"], given_back=True)

    def _job(self, job: str) -> Job:
        found = self._jobs.get(job)
        if found.kept_s is None:
            raise NotHere(f"job {job} is not a kernel's")
        return found


def _tell(job: Job, **record: Any) -> None:
    """Write the record and have the keeper read it."""
    write_json(job.directory / KERNEL, record)
    if (keeper := job.recorded_shim()) is not None:
        send_signal(keeper, LOOK_AGAIN)
