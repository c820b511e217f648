"""The keeper: holds a kernel's lease. A shim without a child. Standard library only, one thread.

Jupyter starts the kernel, so the launcher forks the keeper at the grant, before there is a kernel.
It holds the GPUs' locks and reads `kernel.json`, the agent's, whenever a SIGUSR1 says so:

    taken        how often a kernel was announced; one that does not come within TAKEN_S is given up
    kernel       pid and start_ticks of the kernel that came; null while one is announced
    given_back   the units are needed no more

Without that file it is a ticket: kept until somebody takes it, or its time is over. The lease ends
when kernel, the kernel's session and whoever carries the lease's mark are gone.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
import traceback
from pathlib import Path
from typing import Any, Final, NoReturn

from workbench.agent.gpu_lock import GpuHeldOutside, answer, hold
from workbench.agent.lease import Lease, read_lease
from workbench.agent.output import OutputLog
from workbench.agent.process import ProcessId, has_mark, open_pidfd
from workbench.agent.shim import BUG_CODE, claim, how_it_was_stopped, write_ending
from workbench.agent.tree import Ending, all_processes
from workbench.agent.wakeup import Wakeup
from workbench.protocol.job_files import read_json

KERNEL: Final = "kernel.json"
TAKEN_S: Final = 60.0
LOOK_AGAIN: Final = signal.SIGUSR1
SIGNALS: Final = (signal.SIGTERM, LOOK_AGAIN)
_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0


def run_keeper(directory: Path, doorbell: Path, kept_s: float) -> NoReturn:
    """Be the keeper of the job in `directory`; call it in a fresh fork with `SIGNALS` blocked.

    Args:
        directory: The job directory.
        doorbell: The agent's doorbell.
        kept_s: How long to wait for somebody who takes the units.
    """
    try:
        os.setsid()
        lease = read_lease(directory)
        if lease is not None and claim(directory):
            Keeper(directory, lease, OutputLog(directory, doorbell), kept_s).run()
    except BaseException:  # noqa: BLE001  (nothing of the launcher may go on in this process)
        traceback.print_exc()
        os._exit(BUG_CODE)
    os._exit(0)


class KernelTree:
    """Who uses a kernel's lease: its kernels, their sessions, and whoever carries the mark.

    A kernel's descendants alone do not count: it may be the one that started launcher and agent.

    Args:
        mark: The lease's mark.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self.kernels: list[ProcessId] = []

    def members(self) -> list[ProcessId]:
        """Return the processes that run now, in order of pid; no zombies."""
        if not self.kernels:
            return []
        stats = {stat.id.pid: stat for stat in all_processes()}
        oldest = min(kernel.start_ticks for kernel in self.kernels)
        # A session's number is not given again while it has members.
        sessions = {
            kernel.pid
            for kernel in self.kernels
            if kernel.pid not in stats or stats[kernel.pid].id == kernel
        }
        return [
            stat.id
            for _, stat in sorted(stats.items())
            if stat.id.start_ticks >= oldest
            and not stat.is_zombie
            and (
                stat.id in self.kernels
                or stat.session in sessions
                or has_mark(stat.id.pid, self._mark)
            )
        ]


class Keeper:
    """One kernel's lease, from the grant until nobody uses it.

    Args:
        directory: The job directory.
        lease: What was granted.
        log: The job's output log; its first line says that the GPUs are held.
        kept_s: How long to wait for somebody who takes the units.
    """

    def __init__(self, directory: Path, lease: Lease, log: OutputLog, kept_s: float) -> None:
        self._directory = directory
        self._lease = lease
        self._log = log
        self._tree = KernelTree(lease.mark)
        self._poll = select.poll()
        self._locks: dict[int, socket.socket] = {}
        self._taken = 0
        self._kernel: int | None = None  # A pidfd; None where no kernel runs that we know of.
        self._had_kernel = False
        self._given_up_at: float | None = time.monotonic() + kept_s
        self._given_up_because = "no kernel was started while its GPU was ready"
        self._is_given_back = False
        self._is_stopped = False
        self._ending: Ending | None = None
        self._pause_s = _PAUSE_S

    def run(self) -> None:
        """Hold the lease to its end and write down how that came."""
        try:
            self._take_gpus()
        except GpuHeldOutside as error:
            self._end("failed", str(error))
            return
        self._wakeup = Wakeup(SIGNALS)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        for descriptor in (self._wakeup.fileno(), *self._locks):
            self._poll.register(descriptor, select.POLLIN)
        self._look()
        self._log.append("progress", done=0, total=1, what="the lease is held")
        while (outcome := self._outcome()) is None:
            for descriptor, _ in self._poll.poll(self._wait_ms()):
                self._on_ready(descriptor)
        self._end(*outcome)

    def _take_gpus(self) -> None:
        for uuid in self._lease.real_gpus:
            lock = hold(uuid)
            self._locks[lock.fileno()] = lock

    def _on_ready(self, descriptor: int) -> None:
        if descriptor in self._locks:
            answer(self._locks[descriptor])
        elif descriptor == self._kernel:
            self._forget_kernel()
        else:
            for signum in self._wakeup.take():
                if signum == signal.SIGTERM:
                    self._is_stopped = True
                    self._end_tree()
                else:
                    self._look()

    def _look(self) -> None:
        """Read what the agent has written of the kernel."""
        record = read_json(self._directory / KERNEL)
        if record is None:
            return
        if record["taken"] != self._taken:
            self._taken = record["taken"]
            self._forget_kernel()
            self._had_kernel = False
            self._given_up_at = time.monotonic() + TAKEN_S
            self._given_up_because = f"its kernel did not start within {TAKEN_S:g} s"
        if record["kernel"] is not None and not self._had_kernel:
            self._watch(ProcessId(**record["kernel"]))
        if record["given_back"] and not self._is_given_back:
            self._is_given_back = True
            # A kernel that goes on has given back by itself: it is not ended.
            if self._kernel is None or _is_readable(self._kernel):
                self._end_tree()

    def _watch(self, kernel: ProcessId) -> None:
        self._had_kernel = True
        self._given_up_at = None
        self._pause_s = _PAUSE_S
        self._tree.kernels.append(kernel)
        self._kernel = open_pidfd(kernel)
        if self._kernel is not None:
            self._poll.register(self._kernel, select.POLLIN)

    def _forget_kernel(self) -> None:
        if self._kernel is not None:
            self._poll.unregister(self._kernel)
            os.close(self._kernel)
            self._kernel = None

    def _end_tree(self) -> None:
        if self._ending is None:
            self._ending = Ending(self._tree, self._lease.grace_s)

    def _outcome(self) -> tuple[str, str] | None:
        """Return how the lease ended and why; None while somebody uses it."""
        if self._ending is not None:
            if not self._ending.step():
                return None
            if not self._is_stopped:
                return "done", ""
            stop = how_it_was_stopped(self._directory)
            return stop["outcome"], stop["detail"]
        if self._is_given_back:
            return "done", "its kernel gave it back"
        if self._is_used():
            return None
        return ("done", "") if self._given_up_at is None else ("expired", self._given_up_because)

    def _is_used(self) -> bool:
        if self._kernel is not None:
            return True
        is_awaited = self._given_up_at is not None and time.monotonic() < self._given_up_at
        return is_awaited or bool(self._tree.members())

    def _wait_ms(self) -> float | None:
        if self._ending is not None:
            return 1000 * self._ending.wait_s()
        if self._kernel is not None:
            return None
        pause_s = self._pause_s
        if self._given_up_at is not None and time.monotonic() < self._given_up_at:
            return 1000 * (self._given_up_at - time.monotonic()) + 1
        # The kernel is gone and some of its children are not.
        self._pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return 1000 * pause_s

    def _end(self, outcome: str, detail: str) -> None:
        ending: dict[str, Any] = {"outcome": outcome, "detail": detail, "code": None}
        write_ending(self._directory, ending, self._log)


def _is_readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])
