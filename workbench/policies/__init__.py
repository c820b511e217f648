"""Orderings of jobs, one idea a file; pure. Read `fifo.py` first.

A policy is a `workbench.core.policy.Policy`: it orders and does nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from workbench.core.policy import Ordering, Policy
from workbench.policies.fifo import Easy, Fifo, FifoStrict
from workbench.policies.gittins import Gittins
from workbench.policies.las import Las, Las2d
from workbench.policies.patient import Patient
from workbench.policies.sjf import Sjf, SjfStrict, Srtf

_ALL: Final[tuple[type[Ordering], ...]] = (
    Fifo,
    FifoStrict,
    Easy,
    Sjf,
    SjfStrict,
    Srtf,
    Las,
    Las2d,
    Gittins,
    Patient,
)
POLICIES: Final[dict[str, Callable[[], Policy]]] = {one.name: one for one in _ALL}
"""What people may choose, by name."""
DEFAULT_POLICY: Final = "patient"
