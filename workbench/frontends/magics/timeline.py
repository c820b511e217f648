"""`%gpu-timeline`: what of a job ran where, and when."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class

from workbench.client import UserError
from workbench.client.session import find_job, parse_lines
from workbench.frontends.magics.magics import WorkbenchMagics, plain_errors
from workbench.frontends.magics.status_line import units_text
from workbench.frontends.magics.tables import CELL, TABLE, Shown, columns, sentence
from workbench.protocol.job_files import ENDED, OUTPUT, read_json
from workbench.protocol.messages import JobView
from workbench.protocol.quantities import format_seconds

_MINUTE_S: Final = 60
_BAR_PX: Final = 20
_TICKS: Final = 6
"""At most so many steps on the axis."""
_SHORTEST_STEP_S: Final = 0.001
_NEAR_THE_END_PCT: Final = 95
_FILLS: Final = ("#2f6fb5", "#a8552a", "#2c7d57", "#7d4aa8", "#8a6400", "#a83a5c")
"""White text can be read on each, and each stands out from white and from near black."""
_NUMBER: Final = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A statement, or neighbouring items of a map, in one place.

    Attributes:
        what: Such as `line 2` or `line 2, items 1 to 3`.
        where: The home, or a worker; a GPU's worker is called by its UUID.
        start_unix_s: When it began.
        end_unix_s: When it ended.
    """

    what: str
    where: str
    start_unix_s: float
    end_unix_s: float

    @property
    def statement(self) -> str:
        """What it is a part of: `line 2` of `line 2, items 1 to 3`."""
        return self.what.partition(",")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What is known of one job by now.

    Attributes:
        headline: Which job, how it stands and on what.
        spans: What has ended so far, in program order.
        zero_unix_s: Times are counted from here: the job's start, or the first span's.
    """

    headline: str
    spans: list[Span]
    zero_unix_s: float

    @property
    def length_s(self) -> float:
        """How long it is from zero to the end of the last span."""
        return max((span.end_unix_s for span in self.spans), default=0.0) - self.zero_unix_s


@magics_class
class TimelineMagics(Magics):
    """Looks back at jobs.

    Args:
        workbench: The magics that schedule them.
    """

    def __init__(self, workbench: WorkbenchMagics) -> None:
        super().__init__(workbench.shell)
        self._workbench = workbench

    @line_magic("gpu-timeline")
    @plain_errors
    def gpu_timeline(self, line: str) -> Shown:
        """Show what of a job ran where and when: `%gpu-timeline [ID]`; else of the last job."""
        words = line.split()
        if len(words) > 1:
            raise UsageError(f"%gpu-timeline takes one job id or nothing, got {len(words)} words")
        scheduling = self._workbench.scheduling
        wanted = words[0] if words else scheduling.last_job
        if wanted is None:
            raise UserError(
                "this notebook has not scheduled a cell yet",
                next_step="Run a cell with %%gpu-schedule, or name a job: %gpu-timeline ID",
            )
        job = scheduling.job(wanted)
        view = find_job(scheduling.background.run(scheduling.status()), job.id)
        return shown(read(job.directory, view))


def read(directory: Path, view: JobView | None) -> Timeline:
    """Return what a job has left by now.

    Args:
        directory: The job's directory.
        view: What the controller says of it; None where it does not list it any more.
    """
    spans = _spans(_lines(directory))
    began = [span.start_unix_s for span in spans]
    if view is not None and view.started_unix_s is not None:
        began.append(view.started_unix_s)
    return Timeline(
        headline=_headline(directory, view), spans=spans, zero_unix_s=min(began, default=0.0)
    )


def shown(timeline: Timeline) -> Shown:
    """Return a timeline as a table of text, and as bars."""
    if not timeline.spans:
        lines = [timeline.headline, "no part of it has run to its end"]
        return Shown("\n".join(lines), "".join(sentence(line).markup for line in lines))
    rows = [
        [
            span.what,
            _place(span.where),
            _seconds(span.start_unix_s - timeline.zero_unix_s),
            _seconds(span.end_unix_s - span.start_unix_s),
        ]
        for span in timeline.spans
    ]
    table = columns(["what", "where", "at", "for"], rows)
    return Shown(f"{timeline.headline}\n{table.text}", _figure(timeline, table))


def _lines(directory: Path) -> list[dict[str, Any]]:
    try:
        with (directory / OUTPUT).open("rb") as file:
            return parse_lines(file)
    except FileNotFoundError:
        return []


def _spans(lines: Iterable[dict[str, Any]]) -> list[Span]:
    spans = [
        Span(
            what=line["what"],
            where=line["where"],
            start_unix_s=line["start_unix_s"],
            end_unix_s=line["end_unix_s"],
        )
        for line in lines
        if line["kind"] == "place"
    ]
    return sorted(spans, key=lambda span: (_in_order(span.what), span.start_unix_s))


def _in_order(what: str) -> list[tuple[int, str]]:
    """Return a key by which line 9 comes before line 10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in _NUMBER.split(what)]


def _headline(directory: Path, view: JobView | None) -> str:
    name = f"job {directory.name[:8]}"
    if view is None:
        ending = read_json(directory / ENDED)
        outcome = ending["outcome"] if ending is not None else "how it ended is not known"
        return f"{name}: {outcome}; the controller does not list it any more"
    if view.name:
        name += f" ({view.name})"
    if view.started_unix_s is None:
        return f"{name}: {view.outcome or view.state}, {view.reason or 'not started'}"
    waited = _seconds(max(0.0, view.started_unix_s - view.submitted_unix_s))
    state = view.outcome or view.state
    return f"{name}: {state} on {units_text(view)}, waited {waited}{_ran(view)}"


def _ran(view: JobView) -> str:
    if view.started_unix_s is None or view.ended_unix_s is None:
        return ""
    return f", ran {_seconds(max(0.0, view.ended_unix_s - view.started_unix_s))}"


def _place(where: str) -> str:
    return where[:12] if where.startswith(("GPU-", "MIG-", "SIM-")) else where


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < _MINUTE_S else format_seconds(seconds)


# --- bars: SVG in percent, so that they fill any width and no text is stretched ---


def _figure(timeline: Timeline, table: Shown) -> str:
    lanes: dict[str, list[Span]] = {}
    for span in sorted(timeline.spans, key=lambda span: (span.where, span.start_unix_s)):
        lanes.setdefault(span.where, []).append(span)
    statements = dict.fromkeys(span.statement for span in timeline.spans)
    fills = {one: _FILLS[index % len(_FILLS)] for index, one in enumerate(statements)}
    rows = "".join(
        _row(html.escape(_place(where)), _svg(_bars(spans, timeline, fills)), where)
        for where, spans in lanes.items()
    )
    axis = _row("", _axis(timeline))
    return (
        f"<figure style='margin:0;max-width:60em'>"
        f"<figcaption style='margin:0 0 .4em'>{html.escape(timeline.headline)}</figcaption>"
        f"<table style='{TABLE};width:100%'><tbody>{rows}{axis}</tbody></table>"
        f"<details style='margin-top:.4em'><summary>as a table</summary>{table.markup}</details>"
        f"</figure>"
    )


def _row(head: str, content: str, title: str = "") -> str:
    return (
        f"<tr style='background:transparent'>"
        f"<th scope='row' title='{html.escape(title)}' style='{CELL};border:0;white-space:nowrap;"
        f"font-weight:normal'>{head}</th>"
        f"<td style='{CELL};border:0;width:100%'>{content}</td></tr>"
    )


def _svg(content: str) -> str:
    return (
        f"<svg width='100%' height='{_BAR_PX}' role='img' font-size='11' "
        f"style='display:block'>{content}</svg>"
    )


def _bars(spans: list[Span], timeline: Timeline, fills: dict[str, str]) -> str:
    return "".join(_bar(span, timeline, fills[span.statement]) for span in spans)


def _bar(span: Span, timeline: Timeline, fill: str) -> str:
    left = _percent(span.start_unix_s - timeline.zero_unix_s, timeline)
    width = max(_percent(span.end_unix_s - span.start_unix_s, timeline), 0.3)
    took = _seconds(span.end_unix_s - span.start_unix_s)
    return (
        f"<svg x='{left:.2f}%' width='{width:.2f}%' height='{_BAR_PX}'>"
        f"<title>{html.escape(span.what)}: {took}</title>"
        f"<rect width='100%' height='100%' rx='2' fill='{fill}'/>"
        f"<rect width='100%' height='100%' rx='2' fill='none' stroke='#fff' stroke-opacity='.35'/>"
        f"<text x='5' y='14' fill='#fff'>{html.escape(span.what)}</text></svg>"
    )


def _axis(timeline: Timeline) -> str:
    step_s = _step_s(timeline.length_s / _TICKS)
    marks = []
    for tick in range(int(timeline.length_s / step_s) + 1):
        left = _percent(tick * step_s, timeline)
        anchor = "start" if tick == 0 else "end" if left > _NEAR_THE_END_PCT else "middle"
        marks.append(
            f"<text x='{left:.2f}%' y='13' text-anchor='{anchor}' fill='currentColor' "
            f"opacity='.75'>{tick * step_s:g} s</text>"
        )
    return _svg("".join(marks))


def _step_s(least_s: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, … and 0.5, 0.2, 0.1, … that is not below `least_s`."""
    power = 10.0 ** math.floor(math.log10(max(least_s, _SHORTEST_STEP_S)))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least_s)


def _percent(seconds: float, timeline: Timeline) -> float:
    return 100 * seconds / timeline.length_s if timeline.length_s > 0 else 0.0
