"""Variables by which a process knows its lease, and is known by it. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MARK: Final = "GPU_WORKBENCH_LEASE"
"""Names the lease in a process's environment, by which its tree can be found."""
SIMULATED: Final = "GPU_WORKBENCH_SIMULATED"
"""The simulated GPUs that the lease has, separated by commas; not set where it has none."""


def job_of_mark(mark: str) -> str:
    """Return the job in a lease's mark, `MARK/JOB…`.

    Args:
        mark: What the variable `MARK` holds.
    """
    return mark.rstrip(".").partition("/")[2]


def lease_of_process(env: Mapping[str, str]) -> str | None:
    """Return the job by which a process holds its units.

    Args:
        env: The process's environment.

    Returns:
        The job's id; None where it holds nothing.
    """
    mark = env.get(MARK)
    return job_of_mark(mark) if mark else None
