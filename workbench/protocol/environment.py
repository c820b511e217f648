"""Variables by which a process knows its lease, and is known by it. Standard library only."""

from __future__ import annotations

from typing import Final

MARK: Final = "GPU_WORKBENCH_LEASE"
"""Names the lease in a process's environment, by which its tree can be found."""
SIMULATED: Final = "GPU_WORKBENCH_SIMULATED"
"""The simulated GPUs that the lease has, separated by commas; not set where it has none."""
