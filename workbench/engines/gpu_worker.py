"""Becomes the Dask worker of one GPU.

    python -m workbench.engines.gpu_worker JOB UUID THREADS [BYTES]

BYTES is the memory that the job asked for on each GPU. It is a program of its own since the limit
must be asked of NVML, which neither a shim nor a process that still forks may open: dask-cuda's own
fraction takes a MIG slice for its parent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

from workbench.graphs.run_files import RunFiles

DEVICE_SHARE: Final = 0.8
"""The part of a GPU's memory from which on its worker moves data to the host."""
WORKER_CLASS: Final = "workbench.graphs.dask_edge.GpuWorker"
_THREADS: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def command(uuid: str, limit_bytes: int | None, files: RunFiles) -> list[str]:
    """Return the command line of the worker of one GPU.

    Args:
        uuid: The GPU; also the worker's name.
        limit_bytes: From where on the worker moves data to the host; None where it is not known.
        files: Where the worker meets the home.
    """
    certificate = os.fspath(files.certificate)
    options = {
        "--scheduler-file": os.fspath(files.scheduler),
        "--tls-ca-file": certificate,
        "--tls-cert": certificate,
        "--tls-key": os.fspath(files.key),
        "--protocol": "tls",
        "--host": "127.0.0.1",
        "--name": uuid,
        "--nthreads": "1",
        "--resources": "GPU=1",
        "--memory-limit": "0",  # The lease limits the host's memory.
        "--device-memory-limit": str(limit_bytes or DEVICE_SHARE),
        "--local-directory": os.fspath(files.directory),
        "--worker-class": WORKER_CLASS,
        "--death-timeout": "60",  # A scheduler that is gone when it comes will not come back.
    }
    words = [word for option in options.items() for word in option]
    return [sys.executable, "-m", "dask", "cuda", "worker", *words, "--no-dashboard"]


def environment(own: Mapping[str, str], uuid: str, threads: int) -> dict[str, str]:
    """Return the environment in which a worker sees its GPU and no other.

    Args:
        own: What to add to.
        uuid: The GPU.
        threads: How many a numeric library may use.
    """
    return {
        **own,
        **dict.fromkeys(_THREADS, str(threads)),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": uuid,
        "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
        "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    }


def limit_bytes(uuid: str, asked_bytes: int | None) -> int | None:
    """Return the limit for a device; None where nothing was asked and its size is not known.

    Args:
        uuid: The GPU.
        asked_bytes: What the job asked for on each GPU; None for any.
    """
    from workbench.devices.nvml_source import NvmlSource

    source = NvmlSource()
    try:
        totals = {one.uuid: one.memory_total_bytes.value for one in source.read().devices}
    finally:
        source.close()
    total = totals.get(uuid)
    share = None if total is None else int(DEVICE_SHARE * total)
    return min((one for one in (asked_bytes, share) if one is not None), default=None)


def main() -> NoReturn:
    """Become the worker."""
    job, uuid, threads, *asked = sys.argv[1:]
    limit = limit_bytes(uuid, int(asked[0]) if asked else None)
    argv = command(uuid, limit, RunFiles(Path(job)))
    os.execve(argv[0], argv, environment(os.environ, uuid, int(threads)))  # noqa: S606  (no shell)


if __name__ == "__main__":
    main()
