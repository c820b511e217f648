"""The shim: session leader of one job. Forks the home, outlives it, says how it ended.

Standard library only, one thread. It adopts every orphan of its job, so that "no child left" means
that nobody is left; only then it writes ended.json.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import functools
import os
import select
import signal
import socket
import time
import traceback
from os import _exit  # A cell may put anything into `os`, and the home must end all the same.
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol

from workbench.agent.channels import STREAMS, Channels
from workbench.agent.crews import start_crews
from workbench.agent.gpu_lock import GpuHeldOutside, answer, hold
from workbench.agent.lease import Lease, read_lease
from workbench.agent.output import OutputLog
from workbench.agent.process import (
    adopt_orphans,
    boot_id,
    die_with_parent,
    mark_self,
    own_id,
)
from workbench.agent.tree import Ending, Tree
from workbench.agent.wakeup import Wakeup
from workbench.protocol.job_files import (
    ENDED,
    FAULT,
    SHIM,
    STOP,
    create_json,
    read_json,
    write_json,
)


class JobCode(Protocol):
    """What the shim's forks run: `home.Home`."""

    def run(self, directory: Path, lease: Lease, channels: Channels) -> int:
        """Run a job in the home and return the exit code."""

    def work(self, directory: Path, lease: Lease, name: str) -> None:
        """Be a CPU worker of the job until its scheduler is gone."""


CHUNK_BYTES: Final = 2**16
BUG_CODE: Final = 70
"""What a home exits with that failed by itself. Source: EX_SOFTWARE, sysexits.h(3head)."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
_RETRIES_S: Final = (0.0, 0.1, 0.3, 1.0, 3.0)


def block_signals() -> None:
    """Hold back the shim's signals until it can handle them; call it before the fork."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


def unblock_signals() -> None:
    """Let them through again."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def run_shim(directory: Path, doorbell: Path, code: JobCode) -> NoReturn:
    """Be the shim of the job in `directory`; call it in a fresh fork with signals blocked.

    Where another shim was here before, this one ends at once: a lease starts once.
    """
    try:
        os.setsid()
        lease = read_lease(directory)
        if lease is not None:
            mark_self(lease.mark)
            if claim(directory):
                Shim(directory, lease, OutputLog(directory, doorbell)).run(code)
    except BaseException:  # noqa: BLE001  (nothing of the zygote may go on in this process)
        traceback.print_exc()
        os._exit(BUG_CODE)
    os._exit(0)


def claim(directory: Path) -> bool:
    """Write the calling process down as the job's shim; False where another one is."""
    me = own_id()
    record = {"pid": me.pid, "start_ticks": me.start_ticks, "boot_id": boot_id()}
    return create_json(directory / SHIM, record)


class Shim:
    """One job, from the fork of its home to its ending.

    Args:
        directory: The job directory.
        lease: What was granted.
        log: The job's output log.
    """

    def __init__(self, directory: Path, lease: Lease, log: OutputLog) -> None:
        self._directory = directory
        self._lease = lease
        self._log = log
        self._channels = Channels(log)
        self._decoders = {
            target: codecs.getincrementaldecoder("utf-8")("replace") for target in STREAMS
        }
        self._poll = select.poll()
        self._locks: dict[int, socket.socket] = {}
        self._open_streams: dict[int, int] = {}
        self._workers: set[int] = set()
        self._home = 0
        self._home_status: int | None = None
        self._is_cancelled = False
        self._ending: Ending | None = None
        self._memory_kills_before = out_of_memory_kills()

    def run(self, code: JobCode) -> None:
        """Run the job to its end and write down how it ended."""
        adopt_orphans()
        try:
            self._take_gpus()
        except GpuHeldOutside as error:
            ending = {"outcome": "failed", "detail": str(error)}
            write_ending(self._directory, ending, self._log)
            return
        os.environ.update(self._lease.environment())
        self._start_crews(code)
        self._fork_home(code)
        self._listen()
        while not self._is_over():
            pause_ms = None if self._ending is None else 1000 * self._ending.wait_s()
            for descriptor, _ in self._poll.poll(pause_ms):
                self._on_ready(descriptor)
            if self._ending is not None:
                self._ending.step()
        self._drain()
        write_ending(self._directory, self._outcome(), self._log)

    def _take_gpus(self) -> None:
        for uuid in self._lease.real_gpus:
            lock = hold(uuid)
            self._locks[lock.fileno()] = lock

    def _start_crews(self, code: JobCode) -> None:
        self._channels.crews = start_crews(
            self._directory,
            self._lease,
            locks=self._locks,
            enter=functools.partial(_enter_as_worker, os.getpid(), self._channels),
            work=functools.partial(code.work, self._directory, self._lease),
        )
        self._workers = {pid for gate in self._channels.crews.values() for pid in gate.pids}

    def _fork_home(self, code: JobCode) -> None:
        shim = os.getpid()
        self._home = os.fork()
        if self._home == 0:
            _be_home(shim, self._directory, self._lease, self._channels, code)

    def _listen(self) -> None:
        self._channels.keep_shim_side()
        self._wakeup = Wakeup(_SIGNALS)
        unblock_signals()
        for target, pipe in self._channels.streams.items():
            os.set_blocking(pipe.read, False)
            self._open_streams[pipe.read] = target
        for descriptor in (self._wakeup.fileno(), *self._open_streams, *self._locks):
            self._poll.register(descriptor, select.POLLIN)

    def _on_ready(self, descriptor: int) -> None:
        if descriptor in self._open_streams:
            self._copy(descriptor)
        elif descriptor in self._locks:
            answer(self._locks[descriptor])
        else:
            for signum in self._wakeup.take():
                self._on_signal(signum)

    def _on_signal(self, signum: int) -> None:
        if signum == signal.SIGTERM:
            self._is_cancelled = self._is_cancelled or self._home_status is None
            self._end_tree()
        elif signum == signal.SIGINT and self._home_status is None:
            os.kill(self._home, signal.SIGINT)  # Not reaped yet, so the pid is still its own.

    def _end_tree(self) -> None:
        if self._ending is None:
            tree = Tree(leader=own_id(), mark=self._lease.mark)
            self._ending = Ending(tree, self._lease.grace_s)

    def _is_over(self) -> bool:
        """Reap who ended; True when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                break
            self._workers.discard(pid)
            if pid == self._home:
                self._home_status = status
        if self._home_status is not None:
            for pid in self._workers:  # They hold nothing, and Dask's own would take its time.
                os.kill(pid, signal.SIGKILL)
            self._end_tree()  # Whoever the home left behind must not outlive it.
        return False

    def _copy(self, descriptor: int) -> bool:
        """Move what waits in a pipe to the log; False when it has nothing or is closed."""
        target = self._open_streams[descriptor]
        self._channels.set_busy(target, busy=True)
        try:
            data = os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            self._channels.set_busy(target, busy=False)
            return False
        text = self._decoders[target].decode(data, final=not data)
        if text:
            self._log.append("stream", name=STREAMS[target], text=text)
        self._channels.set_busy(target, busy=False)
        if not data:
            self._poll.unregister(descriptor)
            del self._open_streams[descriptor]
        return bool(data)

    def _drain(self) -> None:
        for descriptor in list(self._open_streams):
            while self._copy(descriptor):
                pass

    def _outcome(self) -> dict[str, Any]:
        assert self._home_status is not None
        code = os.waitstatus_to_exitcode(self._home_status)
        report = self._channels.reported()
        if self._is_cancelled and report.get("outcome") != "done":
            return {**how_it_was_stopped(self._directory), "code": code}
        if report:  # Whatever became of the process afterwards: the result was written before.
            return {**report, "code": code}
        if code < 0:
            detail = f"killed ({_signal_name(-code)}{self._perhaps_why(-code)})"
            return {"outcome": "killed", "detail": detail, "code": code}
        detail = f"the job's own process ended itself with exit code {code}"
        return {"outcome": "failed", "detail": detail, "code": code}

    def _perhaps_why(self, signum: int) -> str:
        """Name a lack of memory only where the host had to kill somebody for it meanwhile."""
        kills = out_of_memory_kills()
        is_short = kills is not None and kills > (self._memory_kills_before or 0)
        return ", perhaps out of memory" if signum == signal.SIGKILL and is_short else ""


def write_ending(directory: Path, ending: dict[str, Any], log: OutputLog) -> None:
    """Write ended.json; where the disk stays full, tell the agent instead."""
    record = {**ending, "ended_unix_s": time.time()}
    for pause_s in _RETRIES_S:
        time.sleep(pause_s)
        try:
            write_json(directory / ENDED, record)
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.ENOENT}:
                raise
        else:
            return
    log.ring(ended=record)


def how_it_was_stopped(directory: Path) -> dict[str, Any]:
    """Return outcome and detail of a stop, as the agent wrote them down."""
    return read_json(directory / STOP) or {"outcome": "cancelled", "detail": "it was stopped"}


def out_of_memory_kills(file: Path = Path("/proc/vmstat")) -> int | None:
    """Return how many processes the host has killed for want of memory; None is not known.

    Source: `oom_kill` in /proc/vmstat, since Linux 4.13; kills within a cgroup count too.
    """
    try:
        fields = dict(line.split() for line in file.read_text(encoding="ascii").splitlines())
    except OSError:
        return None
    return int(fields["oom_kill"]) if "oom_kill" in fields else None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _enter_as_worker(shim: int, channels: Channels) -> None:
    """Die with the shim and at SIGTERM; an interrupt is the home's affair."""
    die_with_parent(shim)
    for signum in _SIGNALS:
        signal.signal(signum, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    unblock_signals()
    channels.keep_nothing()


def _be_home(
    shim: int, directory: Path, lease: Lease, channels: Channels, code: JobCode
) -> NoReturn:
    """Become the home; SIGINT stays held back until the home can turn it into an exception."""
    status = BUG_CODE
    try:
        die_with_parent(shim)
        for signum in _SIGNALS:
            signal.signal(signum, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
        channels.keep_home_side()
        status = code.run(directory, lease, channels)
    except BaseException as error:  # noqa: BLE001  (nothing of the shim may go on in this process)
        with contextlib.suppress(BaseException):
            channels.report(outcome="failed", detail=_write_fault(directory, error))
    finally:
        _exit(status)


def _write_fault(directory: Path, error: BaseException) -> str:
    """Keep a traceback that says nothing to the user; return the sentence that does."""
    what = f"a fault of Workbench's own ended the job ({type(error).__name__}: {error})"
    path = directory / FAULT
    try:
        path.touch(mode=0o600)
        path.write_text("".join(traceback.format_exception(error)), "utf-8", "replace")
    except OSError:
        return what
    return f"{what}; {path} says where it was"
