"""Workers on this host: forked for the CPU, exec'd for each leased GPU. Called by the shim.

They start before the home has run anything of the user, since a process with threads cannot be
forked safely, and wait at a gate (`gate.py`). A worker belongs to the job's session, carries its
lease in the environment and ends with the shim. Standard library only.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NoReturn

from workbench.engines.gate import Gate
from workbench.graphs.run_files import RunFiles, make_certificate

BUG_CODE: Final = 70
"""What a worker exits with that failed by itself. Source: EX_SOFTWARE, sysexits.h(3head)."""


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

    def be_worker(name: str) -> None:
        enter()
        gate.keep_worker_side()
        _print_to(files.log(name))
        if gate.wait():
            work(name)

    for number in range(count):
        gate.pids.append(_fork(be_worker, f"worker-{number}"))
    return gate


def start_gpu_workers(
    uuids: Iterable[str],
    job: Path,
    *,
    enter: Callable[[], None],
    locks: Iterable[int] = (),
    threads: int = 1,
    memory_bytes: int | None = None,
) -> Gate:
    """Start one `dask cuda worker` for each GPU; it imports while the home loads its inputs.

    Args:
        uuids: The leased GPUs.
        job: The job's directory.
        enter: As for `fork_cpu_workers`.
        locks: Descriptors of the GPUs' host-wide locks, which the workers hold too.
        threads: How many a numeric library may use in each.
        memory_bytes: What the job asked for on each GPU; None for any.

    Returns:
        A gate at which nobody waits (these workers wait for the scheduler's file); it shows when
        the last of them is gone.
    """
    make_certificate(RunFiles(job))
    names = list(uuids)
    gate = Gate(len(names))
    asked = [] if memory_bytes is None else [str(memory_bytes)]

    def be_worker(uuid: str) -> None:
        enter()
        gate.keep_worker_side()
        gate.keep_across_exec()
        for lock in locks:
            os.set_inheritable(lock, True)  # noqa: FBT003  (the standard library's)
        _print_to(RunFiles(job).log(uuid))
        program = [sys.executable, "-P", "-m", "workbench.engines.gpu_worker"]
        os.execv(sys.executable, [*program, os.fspath(job), uuid, str(threads), *asked])  # noqa: S606

    for name in names:
        gate.pids.append(_fork(be_worker, name))
    return gate


def _fork(be_worker: Callable[[str], None], name: str) -> int:
    pid = os.fork()
    if pid == 0:
        _run(be_worker, name)
    return pid


def _run(be_worker: Callable[[str], None], name: str) -> NoReturn:
    code = BUG_CODE
    try:
        be_worker(name)
        code = 0
    except BaseException:  # noqa: BLE001  (nothing of the shim may go on in this process)
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _print_to(log: Path) -> None:
    """Make a file of the job the process's stdout and stderr, and its stdin empty."""
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
