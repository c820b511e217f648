from __future__ import annotations

from pathlib import Path

import pytest

from workbench.core.events import DeviceSeen
from workbench.core.model import PriorityClass
from workbench.core.scheduler import Scheduler
from workbench.journal.journal import Journal
from workbench.policies import POLICIES
from workbench.simulate.errors import BadTrace
from workbench.simulate.experiment import try_policy
from workbench.simulate.history import read_history
from workbench.simulate.recording import record_journal
from workbench.simulate.workload import Cluster, SimJob, Workload

LAB = Cluster(nodes=1, gpus_per_node=2)
JOBS = Workload.of(
    "day",
    [
        SimJob(id="a", submit_s=0.0, service_s=500.0, gpus=2, user="alice"),
        SimJob(id="b", submit_s=10.0, service_s=50.0, gpus=1, user="bob"),
        SimJob(id="c", submit_s=20.0, service_s=30.0, gpus=1, user="b", priority=PriorityClass.LOW),
    ],
)


def test_a_recorded_replay_reads_back_as_the_jobs_that_were_replayed(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite3"
    record_journal(path, JOBS, LAB, "fifo")
    trace = read_history(path)
    assert [
        (job.id, job.submit_s, job.service_s, job.gpus, job.user, job.priority)
        for job in trace.workload.jobs
    ] == [
        ("a", 0.0, 500.0, 2, "uid1", PriorityClass.NORMAL),
        ("b", 10.0, 50.0, 1, "uid2", PriorityClass.NORMAL),
        ("c", 20.0, 30.0, 1, "uid3", PriorityClass.LOW),
    ]
    assert trace.cluster == LAB
    assert (
        try_policy(trace.workload, LAB, "fifo").report.wait
        == try_policy(JOBS, LAB, "fifo").report.wait
    )


def test_a_scheduler_goes_on_from_a_recorded_journal_and_its_gpus_say_simulated(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.sqlite3"
    record_journal(path, JOBS, LAB, "fifo")
    with Journal.open(path) as journal:
        entries = list(journal.history())
    state = Scheduler.restore(POLICIES["fifo"](), entries).state
    assert not state.leases
    assert len(state.devices) == 2
    assert all(one.simulated for one in entries if isinstance(one, DeviceSeen))


def test_a_replay_is_never_written_into_a_journal_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite3"
    record_journal(path, JOBS, LAB)
    before = path.read_bytes()
    with pytest.raises(BadTrace, match=r"journal\.sqlite3 is there already"):
        record_journal(path, JOBS, LAB)
    assert path.read_bytes() == before
