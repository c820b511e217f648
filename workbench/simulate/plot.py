"""A Gantt chart of a simulation, as one HTML file that needs nothing else."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from workbench.simulate.bars import OTHERS, SEVERAL, Lanes, by_device, by_user, user_of
from workbench.simulate.errors import BadPlot
from workbench.simulate.metrics import Record

if TYPE_CHECKING:
    from bokeh.models.ui import UIElement
    from bokeh.plotting import figure as Figure  # noqa: N812  (bokeh's name for its class)

_UNITS: Final = (("days", 86_400.0, 3.0), ("hours", 3_600.0, 3.0), ("minutes", 60.0, 5.0))
"""The unit of the time axis, its seconds, and how many of it a chart must span to use it."""
_GREY: Final = "#9a9a9a"
_ROW_PX: Final = 14
_MARGIN_PX: Final = 60
_LEAST_PX: Final = 160
_MOST_PX: Final = 900
MOST_NAMED: Final = 20
"""Entries of a legend; where there are more users, pointing at a bar names its user."""


def write_plot(path: Path, records: Sequence[Record], *, title: str, note: str) -> None:
    """Write the chart: jobs by user above, by device below, one time axis.

    Args:
        path: Where to; what is there is replaced.
        records: At least one.
        title: Above the chart.
        note: Below the title: what was simulated.

    Raises:
        BadPlot: Bokeh is not installed, or the file cannot be written.
    """
    page = page_of(records, title=title, note=note)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise BadPlot(
            f"the chart cannot be written to {path}: {error.strerror or error}",
            next_step="Give --plot a file in a folder of yours",
        ) from error


def page_of(records: Sequence[Record], *, title: str, note: str) -> str:
    """Return the page that `write_plot` writes.

    Raises:
        BadPlot: Bokeh is not installed.
    """
    try:
        from bokeh.embed import file_html
        from bokeh.layouts import column
        from bokeh.models.widgets import Div
        from bokeh.resources import INLINE
    except ImportError as error:
        raise BadPlot(
            "bokeh, which draws the chart, is not installed here",
            next_step="Install gpu-workbench[widgets]",
        ) from error
    users, devices = by_user(records), by_device(records)
    colours = _colours(records)
    unit, unit_s = _unit(records)
    above = _chart("By user", users, colours, unit_s, has_legend=False)
    below = _chart("By device", devices, colours, unit_s, has_legend=len(colours) <= MOST_NAMED)
    below.x_range = above.x_range
    below.xaxis.axis_label = unit
    text = [f"<h2>{html.escape(title)}</h2>", f"<p>{html.escape(note)}</p>"]
    text += [f"<p>{html.escape(said)}</p>" for said in _merging(users, devices)]
    parts: list[UIElement] = [Div(text="".join(text)), above, below]
    page: str = file_html(column(*parts, sizing_mode="stretch_width"), INLINE, title)
    return page


def _merging(users: Lanes, devices: Lanes) -> list[str]:
    """Return what the page has to say of bars that stand for several stints."""
    below_s = max(users.merged_below_s, devices.merged_below_s)
    if not below_s:
        return []
    said = (
        "There are more stints than a browser draws: neighbours in a row that are shorter than "
        f"{below_s:,.0f} s are drawn as one bar, which says how many it stands for; its ends are "
        "theirs, gaps between them are not drawn."
    )
    return [said]


def _unit(records: Sequence[Record]) -> tuple[str, float]:
    span_s = max(r.end_s for r in records) - min(r.job.submit_s for r in records)
    for unit, seconds, least in _UNITS:
        if span_s >= least * seconds:
            return unit, seconds
    return "seconds", 1.0


def _colours(records: Sequence[Record]) -> dict[str, str]:
    """Give the users with most GPU-seconds colours of their own; there are 20."""
    from bokeh.palettes import Category20_20

    held: Counter[str] = Counter()
    for record in records:
        held[user_of(record)] += int(record.gpu_s)
    ranked = [user for user, _ in held.most_common()]
    colours = {user: Category20_20[rank % 20] for rank, user in enumerate(ranked)}
    return colours | {SEVERAL: _GREY, OTHERS: _GREY}


def _chart(
    title: str, lanes: Lanes, colours: dict[str, str], unit_s: float, *, has_legend: bool
) -> Figure:
    from bokeh.models import ColumnDataSource, HoverTool, Range1d
    from bokeh.models.annotations import Legend, LegendItem
    from bokeh.plotting import figure

    bars = lanes.bars
    source = ColumnDataSource(
        {
            "left": [bar.start_s / unit_s for bar in bars],
            "right": [bar.end_s / unit_s for bar in bars],
            "top": [bar.row - 0.45 for bar in bars],
            "bottom": [bar.row + 0.45 for bar in bars],
            "colour": [colours[bar.user] for bar in bars],
            "job": [bar.job for bar in bars],
            "user": [bar.user for bar in bars],
            "gpus": [bar.gpus for bar in bars],
            "wait": [f"{bar.wait_s:,.0f} s" for bar in bars],
            "time": [f"{bar.start_s:,.0f} to {bar.end_s:,.0f} s" for bar in bars],
        }
    )
    chart = figure(
        title=title,
        height=max(_LEAST_PX, min(_MOST_PX, _MARGIN_PX + _ROW_PX * lanes.rows)),
        sizing_mode="stretch_width",
        y_range=Range1d(start=lanes.rows - 0.5, end=-0.5),
        tools="xpan,xwheel_zoom,box_zoom,reset,save",
        active_scroll="xwheel_zoom",
    )
    drawn: Any = chart.quad(
        left="left",
        right="right",
        top="top",
        bottom="bottom",
        color="colour",
        line_color="white",
        line_width=0.25,
        source=source,
    )
    if has_legend:
        users = LegendItem(label={"field": "user"}, renderers=[drawn])
        chart.add_layout(Legend(items=[users]), "right")
    tips = [("job", "@job"), ("user", "@user"), ("GPUs", "@gpus"), ("wait", "@wait")]
    chart.add_tools(HoverTool(tooltips=[*tips, ("held", "@time")]))
    _label_rows(chart, lanes)
    return chart


def _label_rows(chart: Figure, lanes: Lanes) -> None:
    """Name as many rows as there is room for."""
    apart = lanes.rows * _ROW_PX / (_MOST_PX - _MARGIN_PX)
    named: dict[float | str, Any] = {}
    last = -apart
    for row, label in lanes.labels.items():
        if row - last >= apart:
            named[row] = label
            last = row
    chart.yaxis.ticker = [float(row) for row in named]
    chart.yaxis.major_label_overrides = named
    chart.ygrid.visible = False
