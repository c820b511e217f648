"""Who holds memory on a GPU: what NVML says, as far as it can be believed.

NVML writes a newer struct than an older binding expects (or the reverse), and then pids are read
from where memory sizes stand. In a container its pids are often the host's. Wrong rows must never
become a wrong user's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.protocol.telemetry import NotAvailable, ProcessSample, Reading

UNKNOWN_MEMORY = 2**64 - 1
"""NVML's "not available". nvidia-ml-py turns it into None; older bindings pass it on."""
FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""The inode of the host's own PID namespace. Source: PROC_PID_INIT_INO in linux/proc_ns.h."""
LARGEST_PID = 2**22
"""Source: PID_MAX_LIMIT in linux/threads.h."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTable:
    """Rows that can be believed, and why there may be more."""

    rows: tuple[ProcessSample, ...] = ()
    reason: NotAvailable | None = None


def read_process_table(
    rows: Sequence[tuple[int, int | None]],
    *,
    total_bytes: float | None,
    proc: Path = Path("/proc"),
    first_namespace: int = FIRST_PID_NAMESPACE,
) -> ProcessTable:
    """Drop implausible rows and add owners.

    Args:
        rows: (pid, bytes or None) as NVML listed them.
        total_bytes: The device's memory; None where unknown.
        proc: Where the process files are.
        first_namespace: Inode of the PID namespace whose pids NVML speaks of.

    Returns:
        Rows in the given order. After one implausible row no row gets an owner: the rest of such
        a table may be garbage that happens to look right.
    """
    unique = dict(rows)
    sound = {p: u for p, u in unique.items() if _is_plausible(p, u, total_bytes)}
    broken = len(sound) < len(unique)
    return ProcessTable(
        rows=tuple(
            ProcessSample(
                pid=pid,
                used_bytes=(
                    Reading(reason=NotAvailable.NOT_SUPPORTED)
                    if used is None or used == UNKNOWN_MEMORY
                    else Reading(used)
                ),
                owner_uid=(
                    Reading(reason=NotAvailable.IMPLAUSIBLE)
                    if broken
                    else _owner(pid, proc, first_namespace)
                ),
            )
            for pid, used in sound.items()
        ),
        reason=NotAvailable.IMPLAUSIBLE if broken else None,
    )


def _is_plausible(pid: int, used: int | None, total_bytes: float | None) -> bool:
    if not 0 < pid <= LARGEST_PID:
        return False
    return used is None or used == UNKNOWN_MEMORY or total_bytes is None or used <= total_bytes


def _owner(pid: int, proc: Path, first_namespace: int) -> Reading:
    """The user of a process, where the pid means the same to us as to NVML."""
    try:
        if (proc / "self/ns/pid").stat().st_ino != first_namespace:
            return Reading(reason=NotAvailable.OTHER_NAMESPACE)
        return Reading((proc / str(pid)).stat().st_uid)
    except OSError:
        return Reading(reason=NotAvailable.NO_SUCH_PROCESS)
