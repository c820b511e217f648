"""The host's processor and memory, and processes on it, through psutil."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import psutil

from workbench.devices.cgroup import CgroupLimits, read_cgroup_limits
from workbench.protocol.telemetry import HostSample, NotAvailable, Reading


class HostMeter:
    """Reads the host. Processor use is that between two readings, so the first has none.

    Args:
        limits: Reads the control groups' limits.
    """

    def __init__(self, *, limits: Callable[[], CgroupLimits] = read_cgroup_limits) -> None:
        self._limits = limits
        self._hostname = socket.gethostname()
        self._times: tuple[float, float] | None = None
        self._util = Reading(reason=NotAvailable.FIRST_SAMPLE)

    def read(self) -> HostSample:
        """Read everything now; takes well under a millisecond of system calls."""
        limits = self._limits()
        memory = psutil.virtual_memory()
        rooms = [memory.available, limits.memory_left_bytes]
        return HostSample(
            hostname=self._hostname,
            cpu_util_pct=self._read_util(),
            cores_usable=Reading(usable_cores(limits)),
            cores_total=Reading(os.cpu_count() or 1),
            load_1min=Reading(os.getloadavg()[0]),
            memory_total_bytes=Reading(min(filter(None, [memory.total, limits.memory_bytes]))),
            memory_available_bytes=Reading(min(r for r in rooms if r is not None)),
        )

    def _read_util(self) -> Reading:
        times = psutil.cpu_times()
        # The kernel counts guest time in user time already.
        total_s = sum(times) - getattr(times, "guest", 0) - getattr(times, "guest_nice", 0)
        idle_s = times.idle + getattr(times, "iowait", 0)
        last, self._times = self._times, (total_s, idle_s)
        if last is not None and total_s > last[0]:
            busy = 1 - (idle_s - last[1]) / (total_s - last[0])
            self._util = Reading(round(100 * min(max(busy, 0.0), 1.0), 1))
        return self._util


def usable_cores(limits: CgroupLimits | None = None) -> float:
    """How many cores this process can really use: its affinity and its quota, whichever is less.

    Returns:
        A whole number as an int; a fraction where a quota gives one.
    """
    quota = (limits or read_cgroup_limits()).cores
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    if quota is None or quota >= cores:
        return cores
    return int(quota) if quota.is_integer() else quota


class ProcessHandle(Protocol):
    """What is asked of a `psutil.Process`."""

    def create_time(self) -> float:
        """When it started."""

    def cpu_percent(self) -> float:
        """Use since the last call on the same object; 0.0 means nothing at the first."""

    def memory_info(self) -> psutil._common.pmem:
        """Its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessUse:
    """What one process uses: per cent of one core (may exceed 100), and resident bytes."""

    cpu_pct: Reading
    memory_bytes: Reading


class ProcessMeter:
    """Reads processes. Keeps one object per (pid, start time): use is between two readings.

    A fresh object would always show 0 %, and a recycled pid must not inherit another's history.

    Args:
        find: Gives the process that has this pid now.
    """

    def __init__(self, *, find: Callable[[int], ProcessHandle] = psutil.Process) -> None:
        self._find = find
        self._known: dict[tuple[int, float], ProcessHandle] = {}

    def read(self, pids: Iterable[int]) -> dict[int, ProcessUse]:
        """Read these processes and forget all others; one that has ended has a reason instead."""
        known: dict[tuple[int, float], ProcessHandle] = {}
        uses: dict[int, ProcessUse] = {}
        for pid in pids:
            try:
                fresh = self._find(pid)
                key = (pid, fresh.create_time())
                known[key] = self._known.get(key, fresh)
                cpu_pct = known[key].cpu_percent()
                cpu = (
                    Reading(cpu_pct)
                    if key in self._known
                    else Reading(reason=NotAvailable.FIRST_SAMPLE)
                )
                memory = Reading(int(known[key].memory_info().rss))
            except psutil.AccessDenied:
                cpu = memory = Reading(reason=NotAvailable.NO_PERMISSION)
            except psutil.NoSuchProcess:
                cpu = memory = Reading(reason=NotAvailable.NO_SUCH_PROCESS)
            uses[pid] = ProcessUse(cpu_pct=cpu, memory_bytes=memory)
        self._known = known
        return uses
