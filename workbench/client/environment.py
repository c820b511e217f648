"""What a kernel's lease changes in its environment, and how that is undone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from workbench.protocol.environment import MARK

BEFORE: Final = "GPU_WORKBENCH_BEFORE_LEASE"
"""What the variables that the lease sets were before it, as JSON; null for those that were not."""


def own_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment as it was before a kernel's lease changed it.

    A scheduled cell starts from this: it has a lease of its own.
    """
    own = {name: value for name, value in env.items() if name not in {MARK, BEFORE}}
    for name, value in json.loads(env.get(BEFORE, "{}")).items():
        own.pop(name, None)
        if value is not None:
            own[name] = value
    return own


def leased_environment(lease: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """Return what to set for a lease: its own variables, and the memory of what `env` had."""
    own = own_environment(env)
    before = {name: own.get(name) for name in lease if name != MARK}
    return {**lease, BEFORE: json.dumps(before)}
