from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.stand_ins.world import GIB, StubWorld
from workbench.engines.local import cpu_worker_count, threads_each


@pytest.mark.parametrize(
    ("width", "cores", "workers"), [(1, 8, 0), (8, 1, 0), (8, 2, 2), (3, 8, 3), (2, 2, 2)]
)
def test_a_plan_gets_no_more_workers_than_it_can_use(width: int, cores: int, workers: int) -> None:
    assert cpu_worker_count(width, cores) == workers


def test_cores_are_shared_out_among_the_workers() -> None:
    assert [threads_each(3, 8), threads_each(8, 2), threads_each(0, 2)] == [2, 1, 2]


def gpu_stage(world: StubWorld, job: Path, *uuids: str, **variables: str) -> dict[str, object]:
    """Run tasks in real dask-cuda workers of these GPUs; see gpu_stage.py."""
    job.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    run = subprocess.run(
        [sys.executable, "-m", "tests.engines.gpu_stage", str(job), *uuids],
        env=env | world.env | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    logs = "\n".join(path.read_text() for path in job.glob("dask/*.log"))
    assert run.returncode == 0, run.stderr + logs
    assert not [one for one in psutil.process_iter() if str(job) in _command(one)]
    answer: dict[str, object] = json.loads(run.stdout.splitlines()[-1])
    return answer


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def test_a_task_runs_where_the_leased_gpu_alone_is_visible(
    nvml_stub: StubWorld, tmp_path: Path
) -> None:
    pytest.importorskip("dask_cuda", reason="GPU workers need the cuda extra")
    uuids = nvml_stub.gpus(4)
    leased = [uuids[3], uuids[1]]
    answer = gpu_stage(nvml_stub, tmp_path / "job", *leased)
    assert answer["refused"] is None
    seen = answer["seen"]
    assert isinstance(seen, list)
    assert sorted(seen, key=lambda one: leased.index(one["worker"])) == [
        {
            "worker": uuid,
            "visible": uuid,
            "order": "PCI_BUS_ID",
            "check": "same",
            "limit_bytes": 64 * GIB,
            "threads": "3",
            "holds_lock": True,
        }
        for uuid in leased
    ]


@pytest.mark.parametrize(("asked", "limit"), [(6 * GIB, 6 * GIB), (70 * GIB, 64 * GIB)])
def test_the_memory_that_a_job_asks_for_limits_its_workers(
    nvml_stub: StubWorld, tmp_path: Path, asked: int, limit: int
) -> None:
    pytest.importorskip("dask_cuda", reason="GPU workers need the cuda extra")
    (uuid,) = nvml_stub.gpus(1)
    answer = gpu_stage(nvml_stub, tmp_path / "job", uuid, TEST_MEMORY_BYTES=str(asked))
    seen = answer["seen"]
    assert isinstance(seen, list)
    assert [one["limit_bytes"] for one in seen] == [limit]


SWAP = "import os\nif 'CUDA_VISIBLE_DEVICES' in os.environ:\n    os.environ['CUDA_VISIBLE_DEVICES'] = {!r}\n"


def test_a_worker_that_sees_another_gpu_refuses(nvml_stub: StubWorld, tmp_path: Path) -> None:
    pytest.importorskip("dask_cuda", reason="GPU workers need the cuda extra")
    leased, other = nvml_stub.gpus(2)
    (tmp_path / "sitecustomize.py").write_text(SWAP.format(other))
    answer = gpu_stage(nvml_stub, tmp_path / "job", leased, PYTHONPATH=f"{tmp_path}:{Path.cwd()}")
    assert answer["news"] == ["Deserted"]
    assert str(answer["refused"]).endswith(f"leased {leased}, but CUDA shows {other}")
