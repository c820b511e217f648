"""Results as small tables: text, and HTML that a notebook shows in its own colours."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from workbench.core.decisions import AboutJob, Preempt
from workbench.protocol.quantities import format_seconds
from workbench.simulate.bars import user_of
from workbench.simulate.experiment import Result
from workbench.simulate.metrics import Record

SIMULATED: Final = "SIMULATED"
"""Every picture and table of a replay begins with this."""
EVERYBODY: Final = "everybody"
_NOTHING: Final = "—"
_LEFT: Final = ' style="text-align:left"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows below a head, shown as text or HTML.

    Attributes:
        title: What they are.
        head: The name of each column.
        rows: As many cells as `head` has.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (self.head, *self.rows)
        ]
        return "\n".join([f"{SIMULATED}: {self.title}", *lines])

    def _repr_html_(self) -> str:
        said = html.escape(f"{SIMULATED}: {self.title}")
        rows = "".join(_row("td", row) for row in self.rows)
        return (
            f"<table><caption{_LEFT}>{said}</caption><thead>{_row('th', self.head)}</thead>"
            f"<tbody>{rows}</tbody></table>"
        )


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}{_LEFT}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


def waits(results: Mapping[str, Result]) -> Table:
    """Say how long each user's jobs waited, in one or several replays of one workload.

    Args:
        results: By what a reader calls them; at least one.

    Returns:
        A row for each user and one for all of them: the mean and the longest wait of their jobs.
        A wait is the part of a job's time that was no service, restarts included.
    """
    records = {label: _by_user(result.records) for label, result in results.items()}
    first = next(iter(records.values()))
    columns = [f"{label}: {what}" for label in results for what in ("mean wait", "longest")]
    rows = [
        (
            user,
            f"{len(jobs):,}",
            *(text for label in results for text in _mean_and_longest(records[label][user])),
        )
        for user, jobs in first.items()
    ]
    return Table(title="how long jobs waited", head=("user", "jobs", *columns), rows=tuple(rows))


def _by_user(records: Sequence[Record]) -> dict[str, list[Record]]:
    users: dict[str, list[Record]] = {user: [] for user in sorted(map(user_of, records))}
    for record in records:
        users[user_of(record)].append(record)
    return {**users, EVERYBODY: list(records)}


def _mean_and_longest(records: Sequence[Record]) -> tuple[str, str]:
    waits_s = [record.wait_s for record in records]
    return _spelt(sum(waits_s) / len(waits_s)), _spelt(max(waits_s))


def notices(result: Result) -> Table:
    """Say whom the scheduler interfered with, when, and why in its own words.

    Args:
        result: Of one replay.

    Returns:
        A row for each decision about a job other than to start it. Of one that gave way: how long
        it was until it ran again.
    """
    records = {record.job.id: record for record in result.records}
    return Table(
        title=f"what {result.policy} decided beyond starting jobs",
        head=("at", "user", "job", "decision", "why", "ran again after"),
        rows=tuple(
            _notice(records[one.job], one) for one in result.notices if isinstance(one, AboutJob)
        ),
    )


def _notice(record: Record, decision: AboutJob) -> tuple[str, ...]:
    back_s = None
    if isinstance(decision, Preempt):
        back_s = next(s.start_s for s in record.stints if s.start_s >= decision.at) - decision.at
    return (
        _spelt(decision.at),
        user_of(record),
        record.job.id,
        type(decision).__name__.lower(),
        decision.reason,
        _NOTHING if back_s is None else _spelt(back_s),
    )


def _spelt(seconds: float) -> str:
    return format_seconds(max(0.0, round(seconds)))
