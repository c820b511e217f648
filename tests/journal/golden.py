"""The history in `tests/golden/journal_v1.sqlite3`: each event and decision at least once.

`python -m tests.journal.golden` writes a golden file for a new format. A file that was released
is never written again; this history may only change together with the format.
"""

from dataclasses import replace
from pathlib import Path

from tests.core.builders import ALICE, BOB, GIB, HIGH, Lab, gpu, seen
from workbench.core.decisions import Preempt
from workbench.core.events import (
    DeviceBusyOutside,
    DispatchHeld,
    DispatchResumed,
    JobSubmitted,
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
    if format_ <= _TERSE:
        _as_said_then(lab)
    return lab, covered


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
