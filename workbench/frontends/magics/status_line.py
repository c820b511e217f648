"""The line above a scheduled cell's output: where it stands, updated in place."""

from __future__ import annotations

import html
from typing import Any

from workbench.protocol.messages import JobView
from workbench.protocol.quantities import format_seconds


class StatusLine:
    """One display that changes; its last state has no times, so that notebooks compare equal.

    Args:
        plan_text: The plan in plain text, folded under the line; empty for none.
    """

    def __init__(self, plan_text: str) -> None:
        self._plan_text = plan_text
        self._handle: Any = None
        self._shown = ""

    def show(self, text: str) -> None:
        """Replace the line's text."""
        if text == self._shown:
            return
        from IPython.display import display

        self._shown = text
        bundle = {"text/plain": f"gpu-schedule: {text}", "text/html": self._html(text)}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)

    def _html(self, text: str) -> str:
        head = f"<span style='opacity:.75'>gpu-schedule:</span> {html.escape(text)}"
        if not self._plan_text:
            return f"<div>{head}</div>"
        plan = f"<pre style='margin:.3em 0 0 1em'>{html.escape(self._plan_text)}</pre>"
        return f"<details><summary>{head}</summary>{plan}</details>"


def waiting_text(view: JobView) -> str:
    """Return place, reason and estimate of a waiting job, such as `waiting, next in line: …`."""
    place = "next in line" if view.place == 1 else f"place {view.place} in line"
    return f"waiting, {place}: {view.reason}{_estimate_text(view)}"


def running_text(view: JobView, done: int, total: int) -> str:
    """Return where a running job runs and how far it is."""
    progress = f", {done} of {total} done" if total > 1 else ""
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
