"""First come, first served."""

from __future__ import annotations

from workbench.core.policy import Bypass, Ordering


class Fifo(Ordering):
    """Leaves the order to the core's tie-break, which is that of submission; greedy."""

    name = "fifo"


class FifoStrict(Fifo):
    """Nothing passes the head of the queue."""

    name = "fifo-strict"
    bypass = Bypass.STRICT


class Easy(Fifo):
    """EASY backfilling: what does not put off the head's expected start may pass it."""

    name = "easy"
    bypass = Bypass.BACKFILL
    asks_run_times = True
