from __future__ import annotations

import sys
from pathlib import Path

from workbench.engines.gpu_worker import WORKER_CLASS, command, environment, limit_bytes
from workbench.graphs.dask_edge import GpuWorker
from workbench.graphs.run_files import RunFiles


def test_a_gpu_worker_is_named_after_its_gpu_and_uses_tls(tmp_path: Path) -> None:
    argv = command("GPU-1", 5, RunFiles(tmp_path))
    options = dict(zip(argv[5:-1:2], argv[6:-1:2], strict=True))
    assert argv[:5] == [sys.executable, "-m", "dask", "cuda", "worker"]
    assert options["--name"] == "GPU-1"
    assert options["--device-memory-limit"] == "5"
    assert options["--protocol"] == "tls"
    assert options["--tls-key"] == str(tmp_path / "dask/key.pem")
    assert argv[-1] == "--no-dashboard"


def test_where_the_driver_does_not_tell_a_size_the_limit_is_a_share(tmp_path: Path) -> None:
    assert limit_bytes("GPU-nobody-has-it", None) is None
    assert limit_bytes("GPU-nobody-has-it", 6) == 6
    argv = command("GPU-1", None, RunFiles(tmp_path))
    assert argv[argv.index("--device-memory-limit") + 1] == "0.8"


def test_a_gpu_worker_sees_its_own_gpu_alone() -> None:
    own = {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2", "HOME": "/h", "OMP_NUM_THREADS": "9"}
    made = environment(own, "GPU-2", 4)
    assert made["CUDA_VISIBLE_DEVICES"] == "GPU-2"
    assert made["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert made["OMP_NUM_THREADS"] == "4"
    assert made["HOME"] == "/h"


def test_dask_cuda_finds_the_class_of_its_worker() -> None:
    assert f"{GpuWorker.__module__}.{GpuWorker.__qualname__}" == WORKER_CLASS
