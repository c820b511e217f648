"""The history in `tests/golden/journal_v1.sqlite3`: each event and decision at least once.

`python -m tests.journal.golden` writes a golden file for a new format. A file that was released
is never written again; this history may only change together with the format.
"""

from dataclasses import replace
from pathlib import Path

from tests.core.builders import ALICE, BOB, GIB, HIGH, LOW, Lab, gpu, seen
from workbench.core.calendar import Booking, BookingId
from workbench.core.decisions import Preempt, Shrink
from workbench.core.events import (
    BookingCancelled,
    BookingMade,
    DeviceBusyOutside,
    DispatchHeld,
    DispatchResumed,
    DrainEnded,
    DrainStarted,
    FairShareSet,
    HoldRequested,
    JobSubmitted,
    LeaseGrown,
    LeaseResumed,
    LeaseShrunk,
    LeaseSuspended,
    ProgressMade,
    ReleaseRequested,
    Tick,
    UseFell,
    UseRose,
)
from workbench.core.model import JobId, JobKind, Outcome, Preemption, Request
from workbench.core.scheduler import Scheduler
from workbench.journal.codec import FORMAT
from workbench.journal.journal import Journal

GOLDEN = Path(__file__).parents[1] / "golden"
_TERSE = 2
BOOT_ID = "0f0f0f0f-1111-2222-3333-444444444444"


def golden_lab(format_: int = FORMAT) -> tuple[Lab, int]:
    """The lab after the history of a format, and how many entries its snapshot covers."""
    lab = Lab(gpus=2, cores=8, memory_gib=32)
    lab.send(seen(0, 2, memory_gib=None, busy_outside="python of uid 1009"))
    lab.send(seen(0.25, 3, simulated=True))
    everything = Request(
        kind=JobKind.NOTEBOOK,
        priority=HIGH,
        gpus=1,
        cores=2,
        memory_bytes=4 * GIB,
        gpu_memory_bytes=24 * GIB,
        time_limit_s=60.5,
        wait_limit_s=600.0,
    )
    lab.send(
        JobSubmitted(
            at=0.5,
            job=JobId("a" * 32),
            owner=ALICE,
            request=everything,
            name="é",
            notebook="x/y.ipynb",
        )
    )
    lab.start("a" * 32)
    lab.submit("b" * 32, BOB, gpus=1)
    lab.submit("c" * 32, BOB, gpus=1)
    lab.cancel("c" * 32)
    covered = len(lab.entries)
    lab.lose(1, missing=True)
    lab.send(DeviceBusyOutside(at=1, device=gpu(0), reason="python of uid 1009"))
    lab.send(DispatchHeld(at=2, reason="driver mismatch, reboot needed"))
    lab.send(DispatchResumed(at=3))
    lab.submit("d" * 32, BOB, wait_limit_s=5.0, cores=7)
    lab.tick(61)
    lab.end("a" * 32, Outcome.KILLED, "killed (SIGKILL)")
    lab.disconnect(BOB)
    lab.reboot()
    lab.connect(ALICE)
    if format_ > 1:
        lab.submit("e" * 32, cores=8, preemption=(Preemption.CHECKPOINT,), expected_s=9.0)
        lab.start("e" * 32)
        lab.tick(200)
        lab.submit("f" * 32, cores=8, priority=HIGH)
    if format_ > 2:
        lab.send(HoldRequested(at=200, job=JobId("f" * 32)))
        lab.send(ReleaseRequested(at=201, job=JobId("f" * 32)))
        lab.send(DrainStarted(at=201, node="", reason="a new driver"))
        lab.send(DrainEnded(at=202, node=""))
        lab.send(FairShareSet(at=202, half_life_s=3600.0, core_weight=0.25))
        move_priorities(lab)
        book(lab)
        give_way_mildly(lab)
    if format_ <= _TERSE:
        _as_said_then(lab)
    return lab, covered


def move_priorities(lab: Lab, *, steps: int = 5) -> None:
    """Warns, lowers and raises the job that the one before gave way to."""
    lab.end("e" * 32, Outcome.KILLED)
    lab.start("f" * 32)
    lease = lab.lease("f" * 32)
    entries = (
        UseFell(at=300.0, lease=lease, part=0.015625),
        Tick(at=900.0),
        ProgressMade(at=1000.0, lease=lease, part=0.5),
        UseRose(at=1100.0, lease=lease, part=0.75),
        Tick(at=1400.0),
    )
    for entry in entries[:steps]:
        lab.send(entry)


def book(lab: Lab) -> None:
    """Warns a job that is in a booking's way, opens it, warns that it is unused, releases it."""
    at, hour_s = lab.at, 3600.0
    lab.cancel("e" * 32)
    lab.end("f" * 32)
    for number in range(3):
        lab.send(seen(at, number))
    lab.submit("0" * 32, gpus=1, time_limit_s=10 * hour_s)
    lab.start("0" * 32)
    first = Booking(
        id=BookingId("B1"),
        owner=BOB,
        gpus=3,
        start_at=at + hour_s,
        end_at=at + 9 * hour_s,
        every_s=7 * 24 * hour_s,
        name="the course",
    )
    lab.send(BookingMade(at=at, booking=first))
    while (wakeup := lab.scheduler.next_wakeup()) is not None and wakeup < at + 6 * hour_s:
        lab.tick(wakeup)
    lab.end("0" * 32, Outcome.KILLED)
    while (wakeup := lab.scheduler.next_wakeup()) is not None and wakeup < at + 8 * hour_s:
        lab.tick(wakeup)
    lab.send(BookingCancelled(at=lab.at, booking=BookingId("B1"), reason="the course is over"))


def give_way_mildly(lab: Lab) -> None:
    """Shrinks a job and has it grow back; suspends one and has it go on."""
    elastic, still, urgent = (letter * 32 for letter in "123")
    steps = (Preemption.SHRINK, Preemption.SUSPEND)
    lab.submit(elastic, gpus=2, min_gpus=1, cores=1, priority=LOW, preemption=steps)
    lab.submit(still, cores=6, priority=LOW, preemption=steps[1:])
    lab.start(elastic)
    lab.start(still)
    lab.tick(lab.at + 100)
    lab.submit(urgent, gpus=2, cores=4)
    [shrink] = [one for one in lab.scheduler.unconfirmed() if isinstance(one, Shrink)]
    lab.send(LeaseShrunk(at=lab.at, lease=lab.lease(elastic), gpus=shrink.gpus))
    lab.send(LeaseSuspended(at=lab.at, lease=lab.lease(still)))
    lab.start(urgent)
    lab.end(urgent)
    lab.send(LeaseGrown(at=lab.at, lease=lab.lease(elastic)))
    lab.send(LeaseResumed(at=lab.at, lease=lab.lease(still)))


def _as_said_then(lab: Lab) -> None:
    """Older versions did not say what comes after a preemption."""
    lab.entries = [
        replace(entry, reason=entry.reason.partition(";")[0])
        if isinstance(entry, Preempt)
        else entry
        for entry in lab.entries
    ]
    lab.scheduler = Scheduler.restore(lab.policy, lab.entries)


def write(path: Path) -> None:
    lab, covered = golden_lab()
    with Journal.open(path) as journal:
        journal.set_meta("boot_id", BOOT_ID)
        journal.append(lab.entries[:covered])
        journal.compact(lab_after(covered).state)
        journal.append(lab.entries[covered:])


def lab_after(entries: int) -> Lab:
    """A lab in the state after so many entries of the history."""
    whole, lab = golden_lab()[0], Lab(agents=())
    lab.scheduler = type(lab.scheduler).restore(lab.policy, whole.entries[:entries])
    return lab


if __name__ == "__main__":
    write(GOLDEN / f"journal_v{FORMAT}.sqlite3")
