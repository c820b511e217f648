from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from workbench.core.decisions import Decision, End, Grant, Preempt
from workbench.core.events import (
    DeviceSeen,
    Event,
    HostRebooted,
    JobSubmitted,
    LeaseEnded,
    LeaseStarted,
    Tick,
)
from workbench.core.model import DeviceId, JobId, LeaseId, Outcome, Preemption, Request, Uid, Units
from workbench.journal.errors import JournalError
from workbench.journal.journal import Journal
from workbench.simulate.errors import BadTrace
from workbench.simulate.history import JOURNAL, own_journal
from workbench.simulate.traces import read_trace
from workbench.simulate.workload import Cluster, SimJob

GOLDEN = Path(__file__).parents[1] / "golden"


def seen(number: int) -> DeviceSeen:
    return DeviceSeen(
        at=0.0, device=DeviceId(f"GPU-{number}"), model="A", memory_bytes=None, simulated=False
    )


def submitted(at: float, job: str, *, gpus: int = 1, owner: int = 1001) -> JobSubmitted:
    request = Request(gpus=gpus)
    return JobSubmitted(
        at=at, job=JobId(job), owner=Uid(owner), request=request, name="", notebook=None
    )


def grant(at: float, job: str, lease: int, *, gpus: int = 1) -> Grant:
    units = Units(gpus=tuple(DeviceId(f"GPU-{n}") for n in range(gpus)), cores=1)
    return Grant(
        id=lease, at=at, lease=LeaseId(f"L{lease}"), job=JobId(job), units=units, reason=""
    )


def started(at: float, lease: int) -> LeaseStarted:
    return LeaseStarted(at=at, lease=LeaseId(f"L{lease}"))


def ended(at: float, lease: int, outcome: Outcome = Outcome.DONE) -> LeaseEnded:
    return LeaseEnded(at=at, lease=LeaseId(f"L{lease}"), outcome=outcome, detail="")


def preempt(at: float, job: str, lease: int, step: Preemption) -> Preempt:
    return Preempt(
        id=90 + lease,
        at=at,
        lease=LeaseId(f"L{lease}"),
        job=JobId(job),
        step=step,
        winner=JobId("w"),
        reason="",
    )


def journal(folder: Path, *entries: Event | Decision) -> Path:
    path = folder / JOURNAL
    with Journal.open(path) as writer:
        writer.append(entries)
    return path


def ran(at: float, job: str, lease: int, took_s: float) -> list[Event | Decision]:
    return [
        submitted(at, job),
        grant(at, job, lease),
        started(at, lease),
        ended(at + took_s, lease),
    ]


def test_a_job_ran_from_the_agents_word_to_the_end_of_its_lease(tmp_path: Path) -> None:
    path = journal(
        tmp_path,
        seen(0),
        seen(1),
        seen(1),
        submitted(1000.0, "a", gpus=2),
        submitted(1030.0, "b", owner=1002),
        grant(1001.0, "a", 1, gpus=2),
        started(1005.0, 1),
        started(1050.0, 1),
        ended(1105.0, 1),
        ended(1106.0, 1),
        grant(1105.0, "b", 2),
        started(1110.0, 2),
        Tick(at=1111.0),
        ended(1112.5, 2, Outcome.FAILED),
    )
    trace = read_trace(path)
    assert trace.workload.name == JOURNAL
    assert trace.workload.jobs == (
        SimJob(id="a", submit_s=0.0, service_s=100.0, gpus=2, user="uid1001", status=Outcome.DONE),
        SimJob(id="b", submit_s=30.0, service_s=2.5, gpus=1, user="uid1002", status=Outcome.FAILED),
    )
    assert trace.left_out == ()
    assert trace.cluster == Cluster(nodes=1, gpus_per_node=2)


@pytest.mark.parametrize(
    ("step", "service_s"), [(Preemption.CHECKPOINT, 70.0), (Preemption.REQUEUE, 50.0)]
)
def test_work_that_was_kept_when_a_job_gave_way_counts(
    tmp_path: Path, step: Preemption, service_s: float
) -> None:
    path = journal(
        tmp_path,
        submitted(0.0, "a"),
        grant(0.0, "a", 1),
        started(0.0, 1),
        preempt(19.0, "a", 1, step),
        ended(20.0, 1, Outcome.KILLED),
        grant(100.0, "a", 2),
        started(100.0, 2),
        ended(150.0, 2),
    )
    (job,) = read_trace(path).workload.jobs
    assert (job.service_s, job.status) == (service_s, Outcome.DONE)


def test_what_has_no_run_time_on_gpus_is_left_out_and_counted(tmp_path: Path) -> None:
    path = journal(
        tmp_path,
        *ran(0.0, "good", 1, 5.0),
        submitted(0.0, "cpu", gpus=0),
        grant(0.0, "cpu", 2, gpus=0),
        started(0.0, 2),
        ended(3.0, 2),
        submitted(0.0, "waits"),
        submitted(0.0, "gone"),
        End(id=99, at=1.0, job=JobId("gone"), outcome=Outcome.CANCELLED, reason=""),
        submitted(0.0, "stillborn"),
        grant(0.0, "stillborn", 3),
        ended(1.0, 3, Outcome.FAILED),
        submitted(0.0, "rebooted"),
        grant(0.0, "rebooted", 4),
        started(0.0, 4),
        HostRebooted(at=50.0),
        submitted(60.0, "runs"),
        grant(60.0, "runs", 5),
        started(60.0, 5),
    )
    trace = read_trace(path)
    assert [job.id for job in trace.workload.jobs] == ["good"]
    assert {one.reason: one.jobs for one in trace.left_out} == {
        "asking for no GPU": 1,
        "that never ran": 3,
        "that were lost, so that nobody knows how long they ran": 1,
        "that had not ended": 1,
    }


def test_a_journal_that_its_controller_writes_is_read_and_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL
    with Journal.open(path) as writer:
        writer.append(ran(0.0, "a", 1, 5.0))
        assert len(read_trace(path).workload.jobs) == 1
        writer.append(ran(9.0, "b", 2, 5.0))
        assert len(read_trace(path).workload.jobs) == 2


def test_what_a_killed_controller_left_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    left = tmp_path / "left"
    left.mkdir()
    with Journal.open(tmp_path / JOURNAL) as writer:
        writer.append(ran(0.0, "a", 1, 5.0))
        for name in (JOURNAL, f"{JOURNAL}-wal"):
            shutil.copy(tmp_path / name, left)
    before = [file.read_bytes() for file in sorted(left.iterdir())]
    assert len(read_trace(left / JOURNAL).workload.jobs) == 1
    after = [(left / name).read_bytes() for name in (JOURNAL, f"{JOURNAL}-wal")]
    assert after == before


def test_a_journal_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    for golden in sorted(GOLDEN.glob("journal_v*.sqlite3")):
        path = tmp_path / golden.name
        shutil.copy(golden, path)
        assert read_trace(path).workload.jobs


def test_another_database_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    with pytest.raises(BadTrace, match="no journal of a format from 1"):
        read_trace(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(JournalError):
        read_trace(path)


def test_a_journal_without_jobs_has_nothing_to_simulate(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="no job that can be simulated"):
        read_trace(journal(tmp_path, seen(0)))


def test_the_own_journal_is_the_one_that_the_users_controller_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORKBENCH_CONTROLLER", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(tmp_path))
    path = tmp_path / "gpu-workbench" / JOURNAL
    with pytest.raises(BadTrace, match="no journal yet") as caught:
        own_journal()
    assert str(path) in caught.value.message
    path.touch()
    assert own_journal() == path
    monkeypatch.setenv("WORKBENCH_CONTROLLER", "/run/gpu-workbench")
    with pytest.raises(BadTrace, match="WORKBENCH_CONTROLLER names it") as caught:
        own_journal()
    assert JOURNAL in caught.value.next_step
