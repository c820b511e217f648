"""Tasks of a cell that need a GPU, where there is none: what they call says which GPU they see.

What runs beside one another must be proven to have no side effects, and no call of a GPU library is
known to have none. So an empty module stands in for cupy: naming it makes a task one for a GPU. And
`math.gcd` (any call that is known would do) is another function wherever a job runs: it returns the
process's own CUDA_VISIBLE_DEVICES, and waits until as many processes have come to it as it is told.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

SETUP: Final = """
import cupy, math

def slow(x):
    total = 0
    for i in range(100_000):
        total += i * x
    return total

def measure(x, together):
    cupy
    return math.gcd(x, together), slow(x)
"""
"""What the notebook defines in an earlier cell."""

_CUPY: Final = """
import sysconfig

# Only what is installed is known to run no code of its own when it is named.
__file__ = sysconfig.get_path("purelib") + "/cupy/__init__.py"
"""
_PATCH: Final = """
import os, sys

# The kernel keeps the real one: the analysis looks whether it is.
if "ipykernel_launcher" not in sys.orig_argv:
    import math, pathlib, time

    def seen(_, together):
        visible = os.environ["CUDA_VISIBLE_DEVICES"]
        meeting = pathlib.Path(os.environ["TEST_MEETING"])
        (meeting / (visible or "no GPU")).touch()
        deadline = time.monotonic() + 90
        while len(list(meeting.iterdir())) < together:
            if time.monotonic() > deadline:
                raise TimeoutError(f"only {os.listdir(meeting)} came")
            time.sleep(0.01)
        return visible

    math.gcd = seen
"""


def cell(*, items: int, together: int = 1) -> str:
    """Return a map whose items wait until processes that see so many different GPUs have come."""
    return f"out = [measure(x, {together}) for x in range({items})]"


def install(folder: Path) -> dict[str, str]:
    """Write both stand-ins into a new folder; return what to add to a lab's environment."""
    code, meeting = folder / "code", folder / "meeting"
    for one in (folder, code, meeting):
        one.mkdir()
    (code / "cupy.py").write_text(_CUPY)
    (code / "sitecustomize.py").write_text(_PATCH)
    path = [os.fspath(code), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(path), "TEST_MEETING": os.fspath(meeting)}
