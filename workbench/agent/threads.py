"""Thread counts of numeric libraries: one in a zygote, the leased cores in a home.

A process that has run one multi-threaded operation hangs after a fork in the next one, so a zygote
must never have more than one thread to use.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

VARIABLES: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def single_threaded(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` with one thread for each library."""
    return {**environment, **dict.fromkeys(VARIABLES, "1")}


def own_values(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the user has set of these variables."""
    return {name: environment[name] for name in VARIABLES if name in environment}


def thread_environment(own: Mapping[str, str], cores: int) -> dict[str, str]:
    """Return the variables for a home: the leased cores, or less where the user asks for less.

    Args:
        own: What the user has set.
        cores: The leased cores, at least 1.
    """
    return {name: str(_limit(own.get(name, ""), cores)) for name in VARIABLES}


def use_cores(cores: int) -> None:
    """Set the thread counts of the libraries that this process has loaded."""
    if "numpy" in sys.modules or "scipy" in sys.modules or "torch" in sys.modules:
        import threadpoolctl

        threadpoolctl.threadpool_limits(limits=cores)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(cores)


def _limit(value: str, cores: int) -> int:
    return min(int(value), cores) if value.isdecimal() and int(value) > 0 else cores
