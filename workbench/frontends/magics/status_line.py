"""The line above a scheduled cell's output: where it stands, updated in place."""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from typing import Any, Final

from workbench.protocol.messages import JobView
from workbench.protocol.quantities import format_seconds

PAUSE_S: Final = 0.2
"""Between two updates; each one is a message that every front-end redraws."""


class StatusLine:
    """One display that changes; its last state has no times, so that notebooks compare equal.

    Args:
        plan_text: The plan in plain text, folded under the first line and the last; empty for none.
        clock: Tells seconds.
    """

    def __init__(self, plan_text: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._plan_text = plan_text
        self._clock = clock
        self._handle: Any = None
        self._shown = ""
        self._waiting = ""
        self._free_s = 0.0

    def show(self, text: str) -> None:
        """Replace the line's text, or have it wait for its turn: see `due_s`."""
        self._waiting = text
        if self.due_s() == 0:
            self.catch_up()

    def due_s(self) -> float | None:
        """Return in how many seconds `catch_up` has something to show; None for nothing."""
        if self._waiting in {"", self._shown}:
            return None
        return max(0.0, self._free_s - self._clock())

    def catch_up(self) -> None:
        """Show the text that has waited."""
        if self._waiting not in {"", self._shown}:
            self._publish(self._waiting, self._plan_text if self._handle is None else "")

    def end(self, text: str) -> None:
        """Show the last text at once, with the plan."""
        self._publish(text, self._plan_text)

    def _publish(self, text: str, plan_text: str) -> None:
        from IPython.display import display

        self._shown = self._waiting = text
        self._free_s = self._clock() + PAUSE_S
        bundle = {"text/plain": f"gpu-schedule: {text}", "text/html": _html(text, plan_text)}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def _html(text: str, plan_text: str) -> str:
    head = f"<span style='opacity:.75'>gpu-schedule:</span> {html.escape(text)}"
    if not plan_text:
        return f"<div>{head}</div>"
    plan = f"<pre style='margin:.3em 0 0 1em'>{html.escape(plan_text)}</pre>"
    return f"<details><summary>{head}</summary>{plan}</details>"


def waiting_text(view: JobView, *, own_lease: str | None = None) -> str:
    """Return place, reason and estimate of a waiting job, such as `waiting, next in line: …`.

    Args:
        view: The job.
        own_lease: The job by which this kernel holds a GPU; it cannot give it back while it waits.
    """
    place = "next in line" if view.place == 1 else f"place {view.place} in line"
    text = f"waiting, {place}: {view.reason}{_estimate_text(view)}"
    if own_lease is not None and f"job {own_lease[:8]}" in view.reason:
        return f"{text}. That is this kernel: interrupt the cell, then %gpu-release gives it back"
    return text


def running_text(view: JobView, done: int, total: int) -> str:
    """Return where a running job runs and how far it is."""
    progress = f", {done} of {total} steps done" if total > 1 else ""
    return f"running on {units_text(view)}{progress}"


def units_text(view: JobView) -> str:
    """Return the units a job holds, such as `2 cores` or `GPU-9b3c1a2b and 4 cores`."""
    cores = f"{view.cores} core" + ("s" if view.cores != 1 else "")
    if not view.gpus:
        return f"{cores} (CPU)"
    simulated = " (SIMULATED: runs on the CPU)" if view.gpus[0].startswith("SIM-") else ""
    return f"{', '.join(gpu[:12] for gpu in view.gpus)} and {cores}{simulated}"


def _estimate_text(view: JobView) -> str:
    estimate = view.estimate
    if estimate is None:
        return ""
    if estimate.high_s is None:
        return f" ({estimate.reason})" if estimate.reason else " (start unknown)"
    low = format_seconds(estimate.low_s or 0)
    return f" (starts in {low} to {format_seconds(estimate.high_s)})"
