"""The lab's clock: wall time at first start, advanced by CLOCK_BOOTTIME, never backwards.

A jump of the wall clock therefore moves no deadline. The base is kept beside the journal: one row
of lab time and boot time, and the boot id that the boot time belongs to.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
JUMP_S: Final = 0.5
"""By less than this the wall clock is thought to drift, not to have been set."""
_ROW: Final = "clock"


class Meta(Protocol):
    """Named rows that live beside the journal's entries."""

    def get_meta(self, key: str) -> str | None:
        """Return the row, or None where there is none."""

    def set_meta(self, key: str, value: str) -> None:
        """Write the row durably."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTime:
    """What the host says now.

    Attributes:
        wall_s: Unix time.
        boot_s: CLOCK_BOOTTIME, which goes on while the host sleeps (clock_gettime(2)).
        boot_id: Changes at every boot.
    """

    wall_s: float
    boot_s: float
    boot_id: str


def host_time() -> HostTime:
    """Read the host's clocks."""
    return HostTime(
        wall_s=time.time(),
        boot_s=time.clock_gettime(time.CLOCK_BOOTTIME),
        boot_id=BOOT_ID.read_text(encoding="ascii").strip(),
    )


class LabClock:
    """Tells the lab's time. Make it with `open_clock`.

    Args:
        offset_s: Lab time minus CLOCK_BOOTTIME.
        floor_s: The latest time already told; the clock never tells an earlier one.
        boot_s: Reads CLOCK_BOOTTIME.
    """

    def __init__(
        self, *, offset_s: float, floor_s: float, boot_s: Callable[[], float] | None = None
    ) -> None:
        self._offset_s = offset_s
        self._latest_s = floor_s
        self._wall_ahead_s = 0.0
        self._boot_s = boot_s or (lambda: time.clock_gettime(time.CLOCK_BOOTTIME))

    def now(self) -> float:
        """Return the lab's time in seconds; never less than a time it told before."""
        self._latest_s = max(self._latest_s, self._boot_s() + self._offset_s)
        return self._latest_s

    def unix_s(self, at: float) -> float:
        """Return when `at` was on the host's wall clock; the same each time until that jumps."""
        ahead_s = time.time() - self.now()
        if abs(ahead_s - self._wall_ahead_s) > JUMP_S:
            self._wall_ahead_s = ahead_s
        return at + self._wall_ahead_s


def open_clock(meta: Meta, *, last_at: float, host: HostTime) -> tuple[LabClock, bool]:
    """Continue the lab's clock, or begin one.

    Args:
        meta: Where the base is kept; a new base is written before this returns.
        last_at: The latest time in the journal, 0.0 where it is empty.
        host: The host's clocks now.

    Returns:
        The clock, and whether the host was booted since the base was written.
    """
    kept = meta.get_meta(_ROW)
    base = json.loads(kept) if kept else None
    if base is not None and base["boot_id"] == host.boot_id:
        return LabClock(offset_s=base["offset_s"], floor_s=last_at), False
    # While the host was down nobody counted, so the wall clock says how long that took.
    offset_s = max(host.wall_s, last_at) - host.boot_s
    meta.set_meta(_ROW, json.dumps({"offset_s": offset_s, "boot_id": host.boot_id}))
    return LabClock(offset_s=offset_s, floor_s=last_at), base is not None
