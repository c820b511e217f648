"""A Gantt chart that needs no program to be looked at: as SVG, and as text.

`plot` has the chart for large traces, to zoom into.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from workbench.protocol.quantities import format_seconds
from workbench.simulate.bars import OTHERS, SEVERAL, Bar, Lanes, by_device, by_user, user_of
from workbench.simulate.experiment import Result
from workbench.simulate.metrics import Record
from workbench.simulate.plot import page_of
from workbench.simulate.tables import SIMULATED

_MOST_BARS: Final = 2_000
_FILLS: Final = ("#2f6fb5", "#a8552a", "#2c7d57", "#7d4aa8", "#8a6400", "#a83a5c")
"""White text can be read on each, and each stands out from white and from near black."""
_GREY: Final = "#777777"
"""Can be read on white and on near black: the picture does not know the page's colour."""
_WIDTH: Final = 960
_LEFT: Final = 110
_ROW: Final = 18
_GAP: Final = 30
_LETTER: Final = 6.6
"""How wide a letter is at most."""
_STEPS_S: Final = (1, 10, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400)
_MOST_TICKS: Final = 12
_TEXT_COLUMNS: Final = 72
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SHARED: Final = "*"
_FREE: Final = "."
_MOST_DIGIT: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Gantt:
    """The jobs of one replay by user and by device, over time.

    Attributes:
        title: What was replayed, and how.
        records: At least one.
    """

    title: str
    records: tuple[Record, ...]

    def __repr__(self) -> str:
        return _text(self)

    def _repr_svg_(self) -> str:
        return _svg(self)


@dataclass(frozen=True, slots=True)
class Frame:
    """A page of its own in a cell of a notebook.

    Attributes:
        page: A whole document.
    """

    page: str

    def __repr__(self) -> str:
        return f"{SIMULATED}: a Gantt chart to zoom into (shown in a notebook)"

    def _repr_html_(self) -> str:
        page = html.escape(self.page)
        style = "width:100%;height:560px;border:0;background:white"  # Bokeh's text is black.
        return f'<iframe srcdoc="{page}" style="{style}"></iframe>'


def gantt(result: Result, title: str = "") -> Gantt:
    """Draw a replay: jobs by user above, by device below.

    Args:
        result: Of one replay.
        title: What was replayed; the policy's name where it is left out.
    """
    return Gantt(title=title or f"under {result.policy}", records=result.records)


def zoomable(result: Result, title: str = "") -> Frame:
    """Draw the same to zoom into, with each job's wait where one points at it.

    Args:
        result: Of one replay.
        title: As for `gantt`.

    Raises:
        BadPlot: Bokeh is not installed.
    """
    said = f"{SIMULATED}: {title or f'under {result.policy}'}"
    return Frame(page_of(result.records, title=said, note=f"{len(result.records):,} jobs"))


def _span(records: Sequence[Record]) -> tuple[float, float]:
    """Return when the first job was submitted and when the last one ended, which is later."""
    begin_s = min(record.job.submit_s for record in records)
    return begin_s, max(begin_s + 1.0, *(record.end_s for record in records))


def _ranked(records: Sequence[Record]) -> list[str]:
    """Return the users, those with most GPU time first."""
    held: Counter[str] = Counter()
    for record in records:
        held[user_of(record)] += int(record.gpu_s)
    return [user for user, _ in held.most_common()]


# ---- SVG


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """Where a time is on the picture."""

    begin_s: float
    end_s: float

    def at(self, time_s: float) -> float:
        share = (time_s - self.begin_s) / (self.end_s - self.begin_s)
        return _LEFT + share * (_WIDTH - _LEFT)

    def ticks(self) -> list[float]:
        span_s = self.end_s - self.begin_s
        coarse = span_s / _MOST_TICKS
        step_s = next((step for step in _STEPS_S if step >= coarse), 0) or (
            86_400 * -(-coarse // 86_400)
        )
        return [self.begin_s + step_s * number for number in range(int(span_s // step_s) + 1)]


def _svg(chart: Gantt) -> str:
    axis = _Axis(**dict(zip(("begin_s", "end_s"), _span(chart.records), strict=True)))
    fills = {user: _FILLS[rank % len(_FILLS)] for rank, user in enumerate(_ranked(chart.records))}
    fills |= {OTHERS: _GREY, SEVERAL: _GREY}
    parts = [_label(0, 14, f"{SIMULATED}: {chart.title}", bold=True)]
    top = _GAP
    for heading, lanes in (
        ("by user", by_user(chart.records, most=_MOST_BARS)),
        ("by device", by_device(chart.records, most=_MOST_BARS)),
    ):
        parts += _panel(heading, lanes, axis, fills, top)
        top += _GAP + _ROW * lanes.rows
    height = top + _ROW
    parts += _time_axis(axis, height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 20} {height + 6}" '
        f'width="{_WIDTH + 20}" font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


def _panel(heading: str, lanes: Lanes, axis: _Axis, fills: dict[str, str], top: float) -> list[str]:
    first = top + _ROW
    parts = [_label(_LEFT, first - 5, heading)]
    parts += [
        _label(0, first + (row + 0.5) * _ROW + 4, _cut(label, _LEFT - 8))
        for row, label in lanes.labels.items()
    ]
    for bar in lanes.bars:
        parts.append(_bar(bar, axis, fills[bar.user], first + bar.row * _ROW))
    return parts


def _bar(bar: Bar, axis: _Axis, fill: str, y: float) -> str:
    x = axis.at(bar.start_s)
    width = max(axis.at(bar.end_s) - x - 1, 0.5)
    said = html.escape(f"{bar.job} of {bar.user}: {bar.gpus}, waited {bar.wait_s:,.0f} s")
    name = _cut(bar.job, width - 6)
    text = "" if name in {"", "…"} else _label(x + 3, y + 12, name, fill="#ffffff")
    return (
        f'<g><title>{said}</title><rect x="{x:.1f}" y="{y + 1:.1f}" width="{width:.1f}" '
        f'height="{_ROW - 2}" rx="2" fill="{fill}"/>{text}</g>'
    )


def _time_axis(axis: _Axis, y: float) -> list[str]:
    parts = []
    for tick_s in axis.ticks():
        x = axis.at(tick_s)
        parts.append(
            f'<line x1="{x:.1f}" y1="{_GAP + _ROW}" x2="{x:.1f}" y2="{y - _ROW}" '
            f'stroke="{_GREY}" stroke-opacity=".3"/>'
        )
        parts.append(_label(x, y - 4, format_seconds(tick_s - axis.begin_s)))
    return parts


def _label(x: float, y: float, text: str, *, fill: str = _GREY, bold: bool = False) -> str:
    weight = ' font-weight="bold" font-size="13"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}"{weight}>{html.escape(text)}</text>'


def _cut(text: str, width: float) -> str:
    """Return what fits into a width; nothing where not even a letter does."""
    letters = int(width / _LETTER)
    return text if len(text) <= letters else f"{text[: letters - 1]}…" if letters > 1 else ""


# ---- text


def _text(chart: Gantt) -> str:
    """Draw rows of letters: who held a device, and how many GPUs a user held."""
    begin_s, end_s = _span(chart.records)
    step_s = (end_s - begin_s) / _TEXT_COLUMNS
    middles = [begin_s + step_s * (column + 0.5) for column in range(_TEXT_COLUMNS)]
    users = _ranked(chart.records)
    letters = _letters(users)
    held = {user: [0] * _TEXT_COLUMNS for user in users}
    devices = by_device(chart.records).labels.values()
    holders = {device: [_FREE] * _TEXT_COLUMNS for device in devices}
    for record in chart.records:
        user = user_of(record)
        for stint in record.stints:
            for column, at in enumerate(middles):
                if stint.start_s <= at < stint.end_s:
                    held[user][column] += len(stint.gpus)
                    for gpu in stint.gpus:
                        holders[gpu][column] = letters.get(user, _SHARED)
    return _lines(chart.title, letters, holders, held, f"0 to {format_seconds(end_s - begin_s)}")


def _letters(users: Sequence[str]) -> dict[str, str]:
    """Give each user a letter: the initials where those tell them apart, else A, B, C and so on."""
    initials = {user: user[0].upper() for user in users}
    if len(set(initials.values())) == len(users) and set(initials.values()) <= set(_LETTERS):
        return initials
    return dict(zip(users, _LETTERS, strict=False))


def _lines(
    title: str,
    letters: dict[str, str],
    holders: dict[str, list[str]],
    held: dict[str, list[int]],
    span: str,
) -> str:
    rows = {device: "".join(row) for device, row in holders.items()}
    rows |= {
        f"{user} ({letters.get(user, _SHARED)})": "".join(map(_digit, row))
        for user, row in sorted(held.items())
    }
    width = max(map(len, rows))
    return "\n".join(
        [
            f"{SIMULATED}: {title}",
            f"{'':{width}}  {span}; who holds a device, and how many GPUs a user holds",
            *(f"{name:{width}}  {row}" for name, row in rows.items()),
        ]
    )


def _digit(gpus: int) -> str:
    return _FREE if gpus == 0 else str(gpus) if gpus <= _MOST_DIGIT else "+"
