"""A job's process tree: found by session, start time and lease, and ended. Standard library only.

While the shim lives, every process of its job is its descendant, because it adopts orphans. When
it is dead they have another parent: then the session and the mark in the environment find them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from workbench.agent.process import ProcessId, ProcessStat, has_mark, read_stat, send_signal

PAUSE_S: Final = 0.01
LONGEST_PAUSE_S: Final = 0.5


class Members(Protocol):
    """Finds the processes that are to end."""

    def members(self) -> list[ProcessId]:
        """Return those that run now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Whose processes are meant.

    Attributes:
        leader: The job's shim, dead or alive; it never counts as a member.
        mark: The lease's mark.
    """

    leader: ProcessId
    mark: str

    def members(self) -> list[ProcessId]:
        """Return the processes of this tree that run now, in order of pid; no zombies."""
        stats = {stat.id.pid: stat for stat in all_processes()}
        own_session = self._owns_session(stats)
        children: dict[int, list[int]] = {}
        found: list[int] = []
        for pid, stat in stats.items():
            children.setdefault(stat.parent, []).append(pid)
            # Whatever is older than the leader can be neither its child nor carry its mark.
            if stat.id.start_ticks >= self.leader.start_ticks and (
                (own_session and stat.session == self.leader.pid) or has_mark(pid, self.mark)
            ):
                found.append(pid)
        leader = stats.get(self.leader.pid)
        if leader is not None and leader.id == self.leader:
            found.append(leader.id.pid)
        members = set(found)
        while found:
            for child in children.get(found.pop(), ()):
                if child not in members:
                    members.add(child)
                    found.append(child)
        return [
            stats[pid].id
            for pid in sorted(members)
            if stats[pid].id != self.leader and not stats[pid].is_zombie
        ]

    def _owns_session(self, stats: dict[int, ProcessStat]) -> bool:
        # A session's number is not given again while it has members; if another process has it
        # now, the session was ours no longer.
        holder = stats.get(self.leader.pid)
        return holder is None or holder.id == self.leader


class Ending:
    """Ends a tree in steps: TERM once, then, after the grace time, KILL until nobody is left.

    Args:
        tree: Whom to end.
        grace_s: Seconds between TERM and the first KILL.
    """

    def __init__(self, tree: Members, grace_s: float) -> None:
        self._tree = tree
        self._grace_s = grace_s
        self._kill_at: float | None = None
        self._pause_s = PAUSE_S
        self._next_at = 0.0

    def wait_s(self) -> float:
        """Return how many seconds from now the next step is due."""
        return max(0.0, self._next_at - time.monotonic())

    def step(self) -> bool:
        """Signal who is left, where a step is due; True when a look found nobody."""
        now = time.monotonic()
        if now < self._next_at:
            return False
        self._next_at = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        members = self._tree.members()
        if self._kill_at is None:
            self._kill_at = now + self._grace_s
            _signal_all(members, signal.SIGTERM)
            # A stopped process takes its TERM only when it goes on.
            _signal_all(members, signal.SIGCONT)
        elif now >= self._kill_at:
            _signal_all(members, signal.SIGKILL)
        return not members


def all_processes() -> Iterator[ProcessStat]:
    """Yield every process of the host as it is now."""
    for name in os.listdir("/proc"):  # noqa: PTH208  (names are all that is needed)
        if name.isdecimal() and (stat := read_stat(int(name))) is not None:
            yield stat


def _signal_all(processes: Iterable[ProcessId], signum: signal.Signals) -> None:
    for process in processes:
        send_signal(process, signum)
