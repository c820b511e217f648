"""The host's processor and memory, through psutil."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

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
