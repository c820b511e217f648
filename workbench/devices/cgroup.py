"""What the control groups of this process allow it: cores and memory.

Source: the kernel's cgroup-v2.rst, and cgroup-v1/memory.rst and scheduler/sched-bwc.rst.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NO_LIMIT_BYTES = 2**60
"""Version 1 writes a huge page-aligned number where there is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupLimits:
    """The tightest limits on the way to the root; None where there is none.

    Attributes:
        cores: A CPU quota, in cores.
        memory_bytes: The smallest memory limit.
        memory_left_bytes: The smallest room under any limit; page cache that can be dropped at
            once counts as room.
    """

    cores: float | None = None
    memory_bytes: int | None = None
    memory_left_bytes: int | None = None


def read_cgroup_limits(
    *, membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> CgroupLimits:
    """Read the limits that hold for this process now."""
    cores: list[float] = []
    limits: list[int] = []
    rooms: list[int] = []
    for folder in _folders(membership, root):
        if (quota := _quota(folder)) is not None:
            cores.append(quota)
        limit = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
        if limit is not None and limit < NO_LIMIT_BYTES:
            limits.append(limit)
            rooms.append(max(0, limit - _memory_in_use(folder)))
    return CgroupLimits(
        cores=min(cores, default=None),
        memory_bytes=min(limits, default=None),
        memory_left_bytes=min(rooms, default=None),
    )


def _folders(membership: Path, root: Path) -> Iterator[Path]:
    """Every control group that this process is in, innermost first, of both versions.

    In a container the path may be one of the host that does not exist here; then only the
    existing upper part counts, which is the container's own group.
    """
    for line in _read(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        if not controllers:
            base = root if (root / "cgroup.controllers").exists() else root / "unified"
        elif {"cpu", "memory"} & set(names):
            base = next((root / n for n in (controllers, *names) if (root / n).is_dir()), root)
        else:
            continue
        inner = base / path.strip("/")
        yield from (f for f in (inner, *inner.parents) if f.is_relative_to(base) and f.is_dir())


def _quota(folder: Path) -> float | None:
    words = _read(folder / "cpu.max").split()
    if not words:
        words = [_read(folder / f"cpu.cfs_{n}_us").strip() for n in ("quota", "period")]
    quota, period = words if len(words) == 2 else ("", "")  # noqa: PLR2004
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _memory_in_use(folder: Path) -> int:
    used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes") or 0
    stat = dict(line.split() for line in _read(folder / "memory.stat").splitlines())
    return used - int(stat.get("total_inactive_file") or stat.get("inactive_file") or 0)


def _number(file: Path) -> int | None:
    text = _read(file).strip()
    return int(text) if text.isdigit() else None


def _read(file: Path) -> str:
    """The file's text; empty where it does not exist, as on other versions and at the root."""
    try:
        return file.read_text()
    except OSError:
        return ""
