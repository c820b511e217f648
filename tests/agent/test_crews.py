from __future__ import annotations

from pathlib import Path

from workbench.agent.crews import plan_width, start_crews
from workbench.agent.lease import Lease
from workbench.protocol.job_files import JOB, write_json


def lease(*gpus: str, cores: int) -> Lease:
    return Lease(lease="l", job="j", gpus=list(gpus), cores=cores, simulated=False, grace_s=1)


def unexpected(*_: object) -> None:
    raise AssertionError("no worker was to be started")


def test_a_job_without_a_plan_runs_one_thing_at_a_time(tmp_path: Path) -> None:
    assert plan_width(tmp_path) == 1
    write_json(tmp_path / JOB, {"plan": None})
    assert plan_width(tmp_path) == 1
    write_json(tmp_path / JOB, {"plan": {"width": 5}})
    assert plan_width(tmp_path) == 5


def test_nothing_is_started_where_nothing_can_run_beside(tmp_path: Path) -> None:
    for width, granted in ((1, lease("GPU-1", "GPU-2", cores=8)), (8, lease("GPU-1", cores=1))):
        write_json(tmp_path / JOB, {"plan": {"width": width}})
        crews = start_crews(tmp_path, granted, locks=[], enter=unexpected, work=unexpected)
        assert crews == {}
        assert not (tmp_path / "dask").exists()
