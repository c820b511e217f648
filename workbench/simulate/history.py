"""A lab's own journal as a trace. It is only read; its controller may go on writing."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from workbench.core.decisions import Decision, Grant, Grow, Preempt
from workbench.core.events import (
    DeviceSeen,
    Event,
    HostRebooted,
    JobSubmitted,
    LeaseEnded,
    LeaseResumed,
    LeaseShrunk,
    LeaseStarted,
    LeaseSuspended,
)
from workbench.core.model import DeviceId, JobId, LeaseId, Outcome, Preemption
from workbench.journal.codec import FORMAT
from workbench.journal.journal import Journal
from workbench.journal.schema import explained
from workbench.simulate.errors import BadTrace
from workbench.simulate.workload import Cluster, LeftOut, SimJob, Trace, Workload
from workbench.transport.paths import controller_place, state_directory

JOURNAL: Final = "journal.sqlite3"
_BUSY_TIMEOUT_S: Final = 5.0


def own_journal() -> Path:
    """Return where the journal of this user's own controller is.

    Raises:
        BadTrace: There is none yet, or the controller is the lab's, which keeps it to itself.
        PeerError: The state directory cannot be used.
    """
    place = controller_place()
    if place.lab:
        raise BadTrace(
            f"your controller is the lab's ({place.named_by} names it), and only the user that it "
            "runs as may read its journal",
            next_step=f"Ask whoever keeps it to run this with the path of its {JOURNAL}, or for a "
            "copy",
        )
    path = state_directory() / JOURNAL
    if not path.exists():
        raise BadTrace(
            f"your own lab has no journal yet: there is none at {path}",
            next_step="Run a job first, or give the path of a trace",
        )
    return path


def read_history(path: Path) -> Trace:
    """Read the jobs that ended in the life of a journal, archive included.

    Args:
        path: Of the journal; nothing is written to it.

    Returns:
        Each job that held GPUs: its service is the time from the agent's word that it runs to the
        end of its lease (all its leases, where it was made to give way and kept its work), its
        user the owner's uid, its class the one that was asked for. Times count from the first
        submission of the trace.

    Raises:
        BadTrace: It is no journal, or has no job that can be simulated.
        JournalTooNew: A later version wrote it.
        JournalError: It is damaged, or the disk or SQLite failed.
    """
    found = _History()
    uri = f"file:{quote(str(path))}?mode=ro"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)
    except sqlite3.Error as error:
        raise explained(error, path) from error
    with closing(connection):
        _check_format(path, connection)
        # One statement sees the file as it is now, whatever its controller writes meanwhile.
        for entry in Journal(path, connection).history():
            found.fold(entry)
    return found.trace(path)


def _check_format(path: Path, connection: sqlite3.Connection) -> None:
    try:
        (format_,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error as error:
        raise explained(error, path) from error
    if not 1 <= format_ <= FORMAT:
        raise BadTrace(
            f"{path} is no journal of a format from 1 to {FORMAT}: it says {format_}",
            next_step="Give a journal.sqlite3 of this version of Workbench or an earlier one",
        )


@dataclass(slots=True, kw_only=True)
class _Past:
    """What the journal says of a job.

    Attributes:
        submitted: The event.
        gpus: Of its latest lease, as it was granted.
        held: Those that it has now.
        served_s: Until it stopped or its GPUs changed last, where its work was kept: in seconds
            with all its GPUs, as if so many times fewer had made it so many times slower.
        started_at: Since when it runs on what it has; None where it does not.
        has_run: Whether a lease of it was ever confirmed.
        status: How it ended; None until then.
    """

    submitted: JobSubmitted
    gpus: int = 0
    held: tuple[DeviceId, ...] = ()
    has_run: bool = False
    served_s: float = 0.0
    started_at: float | None = None
    status: str | None = None

    def pause(self, at: float) -> None:
        """Count what it has run until now."""
        if self.started_at is not None:
            part = len(self.held) / self.gpus if len(self.held) < self.gpus else 1.0
            self.served_s += (at - self.started_at) * part
            self.started_at = None

    def resize(self, at: float, held: tuple[DeviceId, ...]) -> None:
        """Go on with more or fewer GPUs."""
        is_running = self.started_at is not None
        self.pause(at)
        self.held = held
        self.started_at = at if is_running else None


class _History:
    """Folds the entries of a journal into jobs, by lease."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, _Past] = {}
        self._leases: dict[LeaseId, JobId] = {}
        self._giving_way: dict[LeaseId, Preemption] = {}
        self._devices: set[DeviceId] = set()

    def fold(self, entry: Event | Decision) -> None:
        """Take in one entry; most say nothing about run times."""
        match entry:
            case JobSubmitted():
                self._jobs.setdefault(entry.job, _Past(submitted=entry))
            case DeviceSeen():
                self._devices.add(entry.device)
            case Grant():
                self._leases[entry.lease] = entry.job
                past = self._jobs[entry.job]
                past.gpus, past.held = len(entry.units.gpus), entry.units.gpus
            case Preempt():
                self._giving_way[entry.lease] = entry.step
            case LeaseStarted() | LeaseResumed():
                self._start(entry)
            case LeaseEnded():
                self._end(entry)
            case HostRebooted():
                self._lose_all()
            case Grow() | LeaseShrunk() | LeaseSuspended() if entry.lease in self._leases:
                self._step(entry, self._jobs[self._leases[entry.lease]])

    def _step(self, entry: Grow | LeaseShrunk | LeaseSuspended, past: _Past) -> None:
        match entry:
            case Grow():
                past.resize(entry.at, past.held + entry.gpus)
            case LeaseShrunk():
                past.resize(entry.at, tuple(gpu for gpu in past.held if gpu not in entry.gpus))
            case LeaseSuspended():
                past.pause(entry.at)

    def _start(self, event: LeaseStarted | LeaseResumed) -> None:
        """Take the first word only: an agent repeats it when it lost the controller."""
        job = self._leases.get(event.lease)
        if job is not None and self._jobs[job].started_at is None:
            self._jobs[job].started_at = event.at
            self._jobs[job].has_run = True

    def _end(self, event: LeaseEnded) -> None:
        job = self._leases.pop(event.lease, None)
        if job is None:
            return
        past = self._jobs[job]
        step = self._giving_way.pop(event.lease, None)
        past.pause(event.at)
        if step is None or event.outcome is Outcome.DONE:
            past.status = str(event.outcome)
        elif step is Preemption.REQUEUE:
            past.served_s = 0.0  # It begins again; what it needs is what the last time took.

    def _lose_all(self) -> None:
        """When the leases ended is not known: the host went down before it said so."""
        for job in self._leases.values():
            self._jobs[job].status = str(Outcome.LOST)
            self._jobs[job].started_at = None
        self._leases.clear()
        self._giving_way.clear()

    def trace(self, path: Path) -> Trace:
        """Return what was folded.

        Raises:
            BadTrace: No job can be simulated.
        """
        left_out: Counter[str] = Counter()
        jobs: list[SimJob] = []
        begin_s = min((past.submitted.at for past in self._jobs.values()), default=0.0)
        for id_, past in self._jobs.items():
            if why := _why_left_out(past):
                left_out[why] += 1
                continue
            jobs.append(
                SimJob(
                    id=id_,
                    submit_s=past.submitted.at - begin_s,
                    service_s=past.served_s,
                    gpus=past.gpus,
                    min_gpus=past.submitted.request.min_gpus,
                    user=f"uid{past.submitted.owner}",
                    status=past.status or "",
                    priority=past.submitted.request.priority,
                )
            )
        return Trace(
            workload=Workload.of(path.name, jobs),
            left_out=tuple(LeftOut(reason=why, jobs=n) for why, n in left_out.items()),
            cluster=Cluster(nodes=1, gpus_per_node=len(self._devices)) if self._devices else None,
        )


def _why_left_out(past: _Past) -> str:
    """Return why a job has no run time on GPUs; empty where it has one."""
    if past.submitted.request.gpus == 0 and past.gpus == 0:
        return "asking for no GPU"
    if not past.has_run:
        return "that never ran"
    if past.status is None:
        return "that had not ended"
    if past.status == Outcome.LOST:
        return "that were lost, so that nobody knows how long they ran"
    return ""
