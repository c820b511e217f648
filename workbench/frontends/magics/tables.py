"""What the magics show: each thing as text and as HTML that suits light and dark themes."""

from __future__ import annotations

import html
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workbench.graphs.show import plan_html, plan_text
from workbench.protocol.messages import JobView, Status
from workbench.protocol.quantities import format_bytes, format_seconds

if TYPE_CHECKING:
    from workbench.advice import Advice
    from workbench.frontends.magics.schedule import Prepared

TABLE: Final = (
    "border-collapse:collapse;table-layout:auto;font-size:90%;margin:.3em 0;color:inherit;"
    "background:transparent"
)
CELL: Final = (
    "text-align:left;vertical-align:top;padding:.15em 1em .15em 0;color:inherit;"
    "background:transparent;border:0;border-bottom:1px solid rgba(128,128,128,.35)"
)
_UNBROKEN_CHARACTERS: Final = 24
"""A shorter cell stays on one line; in a narrow window the long ones give way."""
_ENDED_SHOWN: Final = 5
"""Of ended jobs, where nobody asks for all."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Something with a text and an HTML form."""

    text: str
    markup: str = ""

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.markup or f"<pre>{html.escape(self.text)}</pre>"


def columns(head: list[str], rows: list[list[str]]) -> Shown:
    """Return rows below a head: as aligned text, and as a table."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [head, *rows]
    ]
    return Shown(
        "\n".join(lines),
        f"<table style='{TABLE}'><thead>{_row('th', head)}</thead>"
        f"<tbody>{''.join(_row('td', row) for row in rows)}</tbody></table>",
    )


def _row(tag: str, cells: list[str]) -> str:
    return (
        "<tr style='background:transparent'>"
        + "".join(f"<{tag} style='{_style(one)}'>{html.escape(one)}</{tag}>" for one in cells)
        + "</tr>"
    )


def _style(cell: str) -> str:
    return f"{CELL};white-space:nowrap" if len(cell) <= _UNBROKEN_CHARACTERS else CELL


def jobs(status: Status, *, whole: bool = False) -> Shown:
    """Show running, waiting and lately ended jobs.

    Args:
        status: The lab.
        whole: Show each ended job that the controller tells of, not the last few.
    """
    ended = status.ended if whole else status.ended[:_ENDED_SHOWN]
    views = [*status.jobs, *ended]
    if not views:
        return sentence("no jobs")
    table = columns(
        ["job", "owner", "what", "class", "state", "units", "since", "why"],
        [_job_row(view) for view in views],
    )
    left = len(status.ended) - len(ended)
    if not left:
        return table
    more = sentence(f"{left} more that ended before: %gpu-jobs --all")
    return Shown(f"{table.text}\n{more.text}", f"{table.markup}{more.markup}")


def _job_row(view: JobView) -> list[str]:
    since = view.ended_unix_s or view.started_unix_s or view.submitted_unix_s
    gpus = len(view.gpus) or view.request.gpus
    return [
        view.id[:8],
        view.owner,
        view.name or "—",
        view.priority,
        view.outcome or view.state,
        (f"{count(gpus, 'GPU')}, " if gpus else "") + count(view.cores, "core"),
        format_seconds(round(max(0.0, time.time() - since))),
        view.reason,
    ]


def count(number: int, unit: str) -> str:
    """Return `1 core`, `2 cores`."""
    return f"{number} {unit}{'' if number == 1 else 's'}"


def lab(status: Status, *, whole: bool = False) -> Shown:
    """Show the devices and the queue; `whole` as for `jobs`."""
    from workbench.frontends.magics.devices_table import absence_text, device_rows

    absence = absence_text(status)
    every = [
        *map(sentence, status.notices),
        columns(["device", "use", "memory", "whose"], device_rows(status)),
        *([sentence(absence)] if absence else []),
        jobs(status, whole=whole),
    ]
    return Shown("\n\n".join(one.text for one in every), "".join(one.markup for one in every))


def dry_run(prepared: Prepared) -> Shown:
    """Show plan, advice and request of a cell that was not run."""
    request = prepared.request
    memory = f", {format_bytes(request.memory_bytes)} host memory" if request.memory_bytes else ""
    gpus = f"{count(request.gpus, 'GPU')} and " if request.gpus else ""
    asked = f"would ask for {gpus}{count(request.cores, 'core')}{memory}; nothing was run"
    here = prepared.gpus_here
    if here is not None and request.gpus > here:
        has = count(here, "GPU") if here else "no GPU"
        asked += f". It can never run here: this host has {has}"
    advised = advice(prepared.advice)
    text = f"{plan_text(prepared.plan)}\n{advised.text}\n{asked}"
    return Shown(text, f"{plan_html(prepared.plan)}{advised.markup}{sentence(asked).markup}")


def advice(advice: Advice) -> Shown:
    """Show one piece of advice."""
    return sentence(f"advice: {advice.text}")


def sentence(text: str) -> Shown:
    """Show one sentence."""
    return Shown(text, f"<p style='margin:.3em 0'>{html.escape(text)}</p>")
