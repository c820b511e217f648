"""Jobs that go on with fewer GPUs, or stand still, in place of being stopped."""

from pathlib import Path

import pytest

from tests.core.builders import GIB
from workbench.core.events import HostSeen
from workbench.core.model import JobKind, Preemption, PriorityClass, Request
from workbench.core.settings import Settings
from workbench.policies.fifo import Fifo
from workbench.simulate.errors import BadTrace
from workbench.simulate.metrics import report_on
from workbench.simulate.run import Run
from workbench.simulate.traces import read_trace
from workbench.simulate.workload import Cluster, SimJob, Workload

RULES = Settings(bound_s=None, ageing_s=None, fair_share=False)


class Classes(Run):
    """Jobs of the user `boss` come first; on a host with four cores."""

    def request_of(self, job: SimJob) -> Request:
        is_first = job.user == "boss"
        steps = (Preemption.SHRINK,) if job.min_gpus else (Preemption.SUSPEND,)
        return Request(
            kind=JobKind.COMMAND,
            gpus=job.gpus,
            cores=1 if job.gpus else 4,
            min_gpus=job.min_gpus,
            priority=PriorityClass.HIGH if is_first else PriorityClass.NORMAL,
            preemption=() if is_first else steps,
        )

    def open(self, cluster: Cluster, *, is_pool: bool) -> None:
        super().open(cluster, is_pool=is_pool)
        self.fold(HostSeen(at=0.0, cores=4, memory_bytes=GIB))


def replay(*jobs: SimJob) -> Classes:
    run = Classes(Workload.of("two", jobs), Fifo(), RULES, 60.0)
    run.open(Cluster.parse("1x4"), is_pool=True)
    run.play()
    return run


def job(name: str, submit_s: float, service_s: float, **more: object) -> SimJob:
    return SimJob(id=name, submit_s=submit_s, service_s=service_s, **{"gpus": 4, **more})  # type: ignore[arg-type]


def test_a_shrunk_job_runs_at_the_part_of_its_speed_that_it_has_of_its_gpus() -> None:
    victim, boss = replay(
        job("a", 0.0, 400.0, min_gpus=1), job("b", 100.0, 100.0, gpus=3, user="boss")
    ).records()
    assert (boss.first_start_s, boss.end_s) == (100.0, 200.0)
    # 100 s at full speed, 100 s at a quarter of it, the rest at full speed again.
    assert victim.end_s == 200.0 + (400.0 - 100.0 - 25.0)
    assert [len(stint.gpus) for stint in victim.stints] == [4, 1, 4]
    assert (victim.shrinks, victim.suspensions, victim.preemptions) == (1, 0, 0)
    report = report_on([victim, boss], Cluster.parse("1x4"), events=1, wall_s=1.0)
    assert (report.shrinks, report.as_row()["shrinks"]) == (1, 1)


def test_a_suspended_job_stands_still_and_goes_on_where_it_was() -> None:
    victim, boss = replay(
        job("a", 0.0, 400.0, gpus=0), job("b", 100.0, 50.0, gpus=0, user="boss")
    ).records()
    assert (boss.first_start_s, boss.end_s) == (100.0, 150.0)
    assert victim.end_s == 450.0
    assert [(stint.start_s, stint.end_s) for stint in victim.stints] == [(0, 100), (150, 450)]
    assert (victim.suspensions, victim.preemptions) == (1, 0)


def test_a_trace_may_say_how_far_its_jobs_shrink(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    head = "job_id,submit_s,duration_s,gpus,min_gpus\n"
    path.write_text(f"{head}a,0,10,4,2\nb,0,10,4,\n")
    assert [one.min_gpus for one in read_trace(path).workload.jobs] == [2, None]
    path.write_text(f"{head}a,0,10,4,5\n")
    with pytest.raises(BadTrace, match="min_gpus: '5' is not at most the job's 4 GPUs"):
        read_trace(path)
