"""The workers that a shim starts beside its home where the cell's plan has a use for them.

Standard library only.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from workbench.agent.lease import Lease
from workbench.engines.gate import Gate
from workbench.engines.local import (
    cpu_worker_count,
    fork_cpu_workers,
    start_gpu_workers,
    threads_each,
)
from workbench.protocol.job_files import JOB, read_json

WORTH_WORKERS: Final = 2
"""The home can use one GPU itself; a worker for it would only start more slowly."""


def start_crews(
    directory: Path,
    lease: Lease,
    *,
    locks: Iterable[int],
    enter: Callable[[], None],
    work: Callable[[str], None],
) -> dict[bool, Gate]:
    """Start the workers that the plan in job.json can use; call it before the home is forked.

    Args:
        directory: The job directory.
        lease: What was granted.
        locks: Descriptors of the GPUs' locks.
        enter: Makes a fork a member of the job.
        work: Is a CPU worker.

    Returns:
        The gates at which they wait, by whether those have a GPU.
    """
    width = plan_width(directory)
    crews = {}
    if count := cpu_worker_count(width, lease.cores):
        crews[False] = fork_cpu_workers(count, directory, enter=enter, work=work)
    gpus = len(lease.real_gpus)
    if width > 1 and gpus >= WORTH_WORKERS and importlib.util.find_spec("dask_cuda"):
        crews[True] = start_gpu_workers(
            lease.real_gpus,
            directory,
            enter=enter,
            locks=locks,
            threads=threads_each(gpus, lease.cores),
            memory_bytes=lease.gpu_memory_bytes,
        )
    return crews


def plan_width(directory: Path) -> int:
    """Return how many tasks of the job can run beside one another; 1 where it has no plan."""
    spec = read_json(directory / JOB) or {}
    width: int = (spec.get("plan") or {}).get("width", 1)
    return width
