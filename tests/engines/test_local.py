from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.stand_ins.world import GIB, StubWorld
from workbench.engines.local import (
    cpu_worker_count,
    device_limit_bytes,
    gpu_worker_argv,
    gpu_worker_environment,
    threads_each,
)
from workbench.graphs.run_files import RunFiles


@pytest.mark.parametrize(
    ("width", "cores", "workers"), [(1, 8, 0), (8, 1, 0), (8, 2, 2), (3, 8, 3), (2, 2, 2)]
)
def test_a_plan_gets_no_more_workers_than_it_can_use(width: int, cores: int, workers: int) -> None:
    assert cpu_worker_count(width, cores) == workers


def test_cores_are_shared_out_among_the_workers() -> None:
    assert [threads_each(3, 8), threads_each(8, 2), threads_each(0, 2)] == [2, 1, 2]


def test_a_gpu_worker_spills_at_four_fifths_or_where_it_was_declared() -> None:
    assert device_limit_bytes(80 * GIB, None) == 64 * GIB
    assert device_limit_bytes(80 * GIB, 6 * GIB) == 6 * GIB


def test_a_gpu_worker_is_named_after_its_gpu_and_uses_tls(tmp_path: Path) -> None:
    argv = gpu_worker_argv("GPU-1", 5, RunFiles(tmp_path))
    options = dict(zip(argv[5::2], argv[6::2], strict=False))
    assert argv[:5] == [sys.executable, "-m", "dask", "cuda", "worker"]
    assert options["--name"] == "GPU-1"
    assert options["--device-memory-limit"] == "5"
    assert options["--protocol"] == "tls"
    assert options["--tls-key"] == str(tmp_path / "dask/key.pem")
    assert argv[-1] == "--no-dashboard"


def test_a_gpu_worker_sees_its_own_gpu_alone() -> None:
    environment = gpu_worker_environment(
        {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2", "HOME": "/h", "OMP_NUM_THREADS": "9"}, "GPU-2", 4
    )
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-2"
    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert environment["OMP_NUM_THREADS"] == "4"
    assert environment["HOME"] == "/h"


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
    answers = answer["answers"]
    assert isinstance(answers, list)
    assert sorted(answers, key=lambda one: leased.index(one["worker"])) == [
        {
            "worker": uuid,
            "visible": uuid,
            "order": "PCI_BUS_ID",
            "check": "same",
            "limit_bytes": 8 * GIB,
            "threads": "3",
            "holds_lock": True,
        }
        for uuid in leased
    ]


SWAP = "import os\nif 'CUDA_VISIBLE_DEVICES' in os.environ:\n    os.environ['CUDA_VISIBLE_DEVICES'] = {!r}\n"


def test_a_worker_that_sees_another_gpu_refuses(nvml_stub: StubWorld, tmp_path: Path) -> None:
    pytest.importorskip("dask_cuda", reason="GPU workers need the cuda extra")
    leased, other = nvml_stub.gpus(2)
    (tmp_path / "sitecustomize.py").write_text(SWAP.format(other))
    answer = gpu_stage(nvml_stub, tmp_path / "job", leased, PYTHONPATH=f"{tmp_path}:{Path.cwd()}")
    assert answer["answers"] == ["Deserted(gpu=True)"]
    assert str(answer["refused"]).endswith(f"leased {leased}, but CUDA shows {other}")
