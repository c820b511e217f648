"""One process as Linux knows it: who it is, whose child, which lease's. Standard library only."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workbench.protocol.environment import MARK

MARK_BYTES: Final = 64
"""Every mark has this width, so that a fork can overwrite its ancestor's in place."""
NO_LEASE: Final = "-" * MARK_BYTES

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_STATE, _PARENT, _SESSION, _START = 0, 1, 3, 19
"""Positions after the command in /proc/PID/stat. Source: proc_pid_stat(5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """A process that stays itself: a pid alone may be given to another one later.

    Attributes:
        start_ticks: When it started, in clock ticks since boot.
    """

    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStat:
    """A process at one moment."""

    id: ProcessId
    is_zombie: bool
    parent: int
    session: int


def read_stat(pid: int) -> ProcessStat | None:
    """Return what the kernel says of `pid`, or None where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  (a scan reads thousands)
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command may hold blanks and parentheses; what follows its last one does not.
    fields = text[text.rindex(b")") + 2 :].split()
    return ProcessStat(
        id=ProcessId(pid=pid, start_ticks=int(fields[_START])),
        is_zombie=fields[_STATE] in {b"Z", b"X"},
        parent=int(fields[_PARENT]),
        session=int(fields[_SESSION]),
    )


def is_alive(process: ProcessId) -> bool:
    """Whether that very process still runs; a zombie does not."""
    stat = read_stat(process.pid)
    return stat is not None and stat.id == process and not stat.is_zombie


def own_id() -> ProcessId:
    """Return the calling process's identity."""
    stat = read_stat(os.getpid())
    assert stat is not None
    return stat.id


@functools.cache
def boot_id() -> str:
    """Return the id of the host's present boot. Source: random(4)."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def open_pidfd(process: ProcessId) -> int | None:
    """Return a descriptor that becomes readable when `process` ends; None where it is gone."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    stat = read_stat(process.pid)
    if stat is None or stat.id != process:
        os.close(descriptor)
        return None
    return descriptor


def send_signal(process: ProcessId, signum: signal.Signals) -> None:
    """Signal that very process; one that is gone, or another user's, is left alone."""
    descriptor = open_pidfd(process)
    if descriptor is None:
        return
    try:
        signal.pidfd_send_signal(descriptor, signum)
    except (ProcessLookupError, PermissionError):
        return
    finally:
        os.close(descriptor)


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.getenv.restype = ctypes.c_void_p
    return libc


def _prctl(option: int, value: int) -> None:
    if _libc().prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def prepare_for_forks() -> None:
    """Load once, before any fork, what each fork needs."""
    _libc()
    boot_id()


def die_with_parent(parent: int) -> None:
    """Have the kernel kill the calling process when its parent ends.

    Args:
        parent: Pid of the parent as it was before the fork; where it died in between, the caller
            ends at once.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def mark_of(job: str, lease: str) -> str:
    """Return the mark of a lease: the lease, and the job, whose id no other controller gives.

    Args:
        job: 32 hexadecimal digits.
        lease: At most 31 characters.
    """
    return f"{lease}/{job}".ljust(MARK_BYTES, ".")


def mark_self(mark: str) -> None:
    """Overwrite the calling process's mark where /proc/PID/environ shows it.

    That file shows the memory in which exec laid out the environment; a plain setenv would leave
    the ancestor's mark there.
    """
    address = _libc().getenv(MARK.encode())
    assert len(mark) == len(os.environ.get(MARK, "")) == MARK_BYTES, "started without a mark"
    ctypes.memmove(address, mark.encode("ascii"), MARK_BYTES)
    os.environ[MARK] = mark


def has_mark(pid: int, mark: str) -> bool:
    """Whether the environment of `pid` carries `mark`; False where it cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123  (as in read_stat)
            return f"{MARK}={mark}".encode() in file.read().split(b"\0")
    except OSError:
        return False
