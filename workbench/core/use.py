"""What is measured of a running job: how much it uses what it leased, and how far it got.

The live sampler and the simulator agree on the figures here, so that both tell the core the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from workbench.core.decisions import Lower, Warn
from workbench.core.model import LeaseId, Seconds

WINDOW_S: Final = 300.0
"""Use is the mean over so much time; of a younger lease nothing is told."""
FELL_BELOW: Final = 0.05
"""A mean below this is told as a fall."""
ROSE_ABOVE: Final = 0.20
"""After a fall, a mean above this is told as a rise; in between nothing is told."""
REPORT_S: Final = 60.0
"""Of one lease, use and progress are each told at most once in so much time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What was told of the use of a lease, and what came of it.

    Of a job that gave way only `part` and `lowered` stay, until it has units again.

    Attributes:
        part: What was told last, from 0 to 1.
        low_since: When it fell; None while it is not low.
        risen_since: When the use of a lowered job rose; None while it is low, or not lowered.
        warned: The warning in force: use is still low, and the job is not lowered yet.
        warned_at: When this lease was last warned; None if it never was.
        lowered: Why and since when the job counts as one class lower; None where it does not.
    """

    part: float
    low_since: Seconds | None = None
    risen_since: Seconds | None = None
    warned: Warn | None = None
    warned_at: Seconds | None = None
    lowered: Lower | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a job says of itself.

    Attributes:
        part: How much of it is done, from 0 to 1; never falls within a lease.
        lease: Which it held when it said so.
        nearly_done_from: From when on what is left is less than a restart costs, as far as the
            latest report tells. Once that time has come no report of this lease moves it any more:
            what a job says of itself protects it for that long, once. None where too little is
            done to tell.
    """

    part: float
    lease: LeaseId
    nearly_done_from: Seconds | None = None
