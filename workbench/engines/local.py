"""Workers on this host: forked for the CPU, exec'd for each leased GPU. Called by the shim.

They start before the home has run anything of the user, since a process with threads cannot be
forked safely, and wait at a gate (`gate.py`). A worker belongs to the job's session, carries its
lease in the environment and ends with the shim.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from workbench.engines.gate import Gate
from workbench.graphs.run_files import RunFiles, make_certificate

BUG_CODE: Final = 70
"""What a worker exits with that failed by itself. Source: EX_SOFTWARE, sysexits.h(3head)."""
DEVICE_SHARE: Final = 0.8
"""The part of a GPU's memory from which on a worker spills, where none was declared."""
_WORKER_CLASS: Final = "workbench.graphs.dask_edge.GpuWorker"


def cpu_worker_count(width: int, cores: int) -> int:
    """Return how many workers a plan of this width gets: none where nothing can run beside."""
    return min(width, cores) if width > 1 and cores > 1 else 0


def threads_each(workers: int, cores: int) -> int:
    """Return how many threads a numeric library may use in each of the workers, at least 1."""
    return max(1, cores // max(1, workers))


def fork_cpu_workers(
    count: int, job: Path, *, enter: Callable[[], None], work: Callable[[str], None]
) -> Gate:
    """Fork workers that wait at a gate.

    Args:
        count: At least 1.
        job: The job's directory.
        enter: Makes the fork a member of the job: what dies with whom, which signals it heeds.
        work: Is the worker of this name until its scheduler is gone; called behind the gate.

    Returns:
        The gate, with both ends open.
    """
    files = RunFiles(job)
    files.directory.mkdir(mode=0o700, exist_ok=True)
    gate = Gate(count)
    for number in range(count):
        if os.fork() == 0:
            _be_cpu_worker(gate, files, f"worker-{number}", enter, work)
    return gate


def _be_cpu_worker(
    gate: Gate,
    files: RunFiles,
    name: str,
    enter: Callable[[], None],
    work: Callable[[str], None],
) -> NoReturn:
    code = BUG_CODE
    try:
        enter()
        gate.keep_worker_side()
        _print_to(files.log(name))
        if gate.wait():
            work(name)
        code = 0
    except BaseException:  # noqa: BLE001  (nothing of the shim may go on in this process)
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(code)


def start_gpu_workers(
    memory_bytes: Mapping[str, int],
    job: Path,
    *,
    enter: Callable[[], None],
    locks: Sequence[int] = (),
    threads: int = 1,
) -> Gate:
    """Start one `dask cuda worker` for each GPU; it imports while the home loads its inputs.

    Args:
        memory_bytes: By the GPU's UUID, from where on its worker moves data to the host.
        job: The job's directory.
        enter: As for `fork_cpu_workers`.
        locks: Descriptors of the GPUs' host-wide locks, which the workers hold too.
        threads: How many a numeric library may use in each.

    Returns:
        A gate that nobody waits at (they wait for the scheduler's file); it shows when the last
        of them is gone.
    """
    files = RunFiles(job)
    make_certificate(files)
    gate = Gate(0)
    for uuid, limit in memory_bytes.items():
        if os.fork() == 0:
            _be_gpu_worker(gate, files, uuid, limit, enter, locks, threads)
    return gate


def _be_gpu_worker(
    gate: Gate,
    files: RunFiles,
    uuid: str,
    limit: int,
    enter: Callable[[], None],
    locks: Sequence[int],
    threads: int,
) -> NoReturn:
    try:
        enter()
        gate.keep_worker_side()
        gate.keep_across_exec()
        for lock in locks:
            os.set_inheritable(lock, True)  # noqa: FBT003  (the standard library's)
        _print_to(files.log(uuid))
        argv = gpu_worker_argv(uuid, limit, files)
        environment = gpu_worker_environment(os.environ, uuid, threads)
        os.execve(argv[0], argv, environment)  # noqa: S606  (no shell is wanted)
    except BaseException:  # noqa: BLE001  (as in _be_cpu_worker)
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(BUG_CODE)


def gpu_worker_argv(uuid: str, limit_bytes: int, files: RunFiles) -> list[str]:
    """Return the command line of the worker of one GPU."""
    return [
        sys.executable,
        "-m",
        "dask",
        "cuda",
        "worker",
        "--scheduler-file",
        os.fspath(files.scheduler),
        "--tls-ca-file",
        os.fspath(files.certificate),
        "--tls-cert",
        os.fspath(files.certificate),
        "--tls-key",
        os.fspath(files.key),
        "--host",
        "127.0.0.1",
        "--protocol",
        "tls",
        "--name",
        uuid,
        "--nthreads",
        "1",
        "--resources",
        "GPU=1",
        "--memory-limit",
        "0",  # The lease limits the host's memory.
        "--device-memory-limit",
        str(limit_bytes),
        "--local-directory",
        os.fspath(files.directory),
        "--worker-class",
        _WORKER_CLASS,
        "--no-dashboard",
    ]


def gpu_worker_environment(
    environment: Mapping[str, str], uuid: str, threads: int
) -> dict[str, str]:
    """Return the environment in which a worker sees its own GPU and nothing else."""
    counts = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
        str(threads),
    )
    return {
        **environment,
        **counts,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": uuid,
        "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
        "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
        "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    }


def device_limit_bytes(total_bytes: int, declared_bytes: int | None) -> int:
    """Return from where on a worker moves data off its GPU.

    Args:
        total_bytes: The GPU's memory.
        declared_bytes: What the user said the job needs (`--gpu-memory`), or None.
    """
    return declared_bytes or int(DEVICE_SHARE * total_bytes)


def _print_to(log: Path) -> None:
    """Make a file of the job the process's stdout and stderr, and its stdin empty."""
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
