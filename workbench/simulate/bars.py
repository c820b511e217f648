"""What a Gantt chart draws: bars in rows, few enough for a browser."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Final

from workbench.simulate.metrics import Record, Stint

SEVERAL: Final = "several users"
UNNAMED: Final = "(no user named)"
OTHERS: Final = "(other users)"
MOST_BARS: Final = 15_000
"""A browser draws this many without delay; a page of them has a few megabytes."""
FINEST: Final = 2_000
"""Bars shorter than this part of the whole are narrower than a pixel."""
MOST_USERS: Final = 30
"""Rows of users that fit on a screen; the rest share one."""

_DIGITS: Final = re.compile(r"(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar: a stint of one job, or several short ones of a row.

    Attributes:
        row: Number of its row, from 0.
        start_s: Its left end.
        end_s: Its right end.
        job: Its job's id, or how many stints it stands for.
        user: Whose it is; `SEVERAL` where it is several users'.
        gpus: How many GPUs, and which.
        wait_s: The job's wait; the longest of those that it stands for.
    """

    row: int
    start_s: float
    end_s: float
    job: str
    user: str
    gpus: str
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Bars in rows.

    Attributes:
        labels: The text beside a group of rows, by where its middle is.
        rows: How many there are.
        bars: No two in a row overlap.
        merged_below_s: Stints shorter than this were drawn as one with their neighbours; 0 if none.
    """

    labels: Mapping[float, str]
    rows: int
    bars: tuple[Bar, ...]
    merged_below_s: float


def by_device(records: Iterable[Record], *, most: int = MOST_BARS) -> Lanes:
    """Return one row for each GPU that was used, in the order of their names."""
    rows: dict[str, list[Bar]] = defaultdict(list)
    for record in records:
        for stint in record.stints:
            bar = _bar(record, stint)
            for gpu in stint.gpus:
                rows[gpu].append(bar)
    ordered = sorted(rows, key=_natural)
    return _lanes({gpu: [rows[gpu]] for gpu in ordered}, most)


def by_user(records: Sequence[Record], *, most: int = MOST_BARS) -> Lanes:
    """Return for each user as many rows as the user had jobs running at a time."""
    stints: dict[str, list[Bar]] = defaultdict(list)
    held: Counter[str] = Counter()
    for record in records:
        user = user_of(record)
        held[user] += int(record.gpu_s)
        stints[user] += [_bar(record, stint) for stint in record.stints]
    if len(stints) > MOST_USERS:
        largest = [user for user, _ in held.most_common(MOST_USERS)]
        rest = sorted(stints.keys() - set(largest))
        stints[OTHERS] = [bar for user in rest for bar in stints.pop(user)]
    ordered = sorted(stints, key=lambda user: (user == OTHERS, _natural(user)))
    return _lanes({user: _packed(stints[user]) for user in ordered}, most)


def user_of(record: Record) -> str:
    """Return how a chart names the job's user."""
    return record.job.user or UNNAMED


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a key that sorts `gpu10` behind `gpu9`."""
    parts = _DIGITS.split(name)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def _bar(record: Record, stint: Stint) -> Bar:
    names = ", ".join(stint.gpus[:4])
    more = " …" if len(stint.gpus) > 4 else ""  # noqa: PLR2004  (as many as are named)
    return Bar(
        row=0,
        start_s=stint.start_s,
        end_s=stint.end_s,
        job=record.job.id,
        user=user_of(record),
        gpus=f"{len(stint.gpus)} ({names}{more})",
        wait_s=record.wait_s,
    )


def _packed(bars: Iterable[Bar]) -> list[list[Bar]]:
    """Put bars that overlap into rows of their own: each into the first row that is free."""
    rows: list[list[Bar]] = []
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for bar in sorted(bars, key=lambda bar: (bar.start_s, bar.end_s, bar.job)):
        while busy and busy[0][0] <= bar.start_s:
            heappush(free, heappop(busy)[1])
        if not free:
            heappush(free, len(rows))
            rows.append([])
        row = heappop(free)
        rows[row].append(bar)
        heappush(busy, (bar.end_s, row))
    return rows


def _lanes(groups: Mapping[str, Sequence[Sequence[Bar]]], most: int) -> Lanes:
    labels: dict[float, str] = {}
    rows: list[list[Bar]] = []
    for label, lanes in groups.items():
        labels[len(rows) + (len(lanes) - 1) / 2] = label
        rows += [sorted(lane, key=lambda bar: (bar.start_s, bar.end_s)) for lane in lanes]
    count = sum(len(row) for row in rows)
    if count <= most:
        return Lanes(labels=labels, rows=len(rows), bars=_numbered(rows), merged_below_s=0.0)
    begin_s = min(row[0].start_s for row in rows if row)
    end_s = max(bar.end_s for row in rows for bar in row)
    below_s = max((end_s - begin_s) / FINEST, 1e-9)
    merged = [_merged(row, below_s) for row in rows]
    while sum(len(row) for row in merged) > max(most, len(rows)):
        below_s *= 2
        merged = [_merged(row, below_s) for row in rows]
    return Lanes(labels=labels, rows=len(rows), bars=_numbered(merged), merged_below_s=below_s)


def _numbered(rows: Sequence[Sequence[Bar]]) -> tuple[Bar, ...]:
    return tuple(replace(bar, row=number) for number, row in enumerate(rows) for bar in row)


def _merged(row: Sequence[Bar], below_s: float) -> list[Bar]:
    """Return a row with each run of short bars, close to one another, as one bar."""
    drawn: list[Bar] = []
    run: list[Bar] = []
    for bar in row:
        is_short = bar.end_s - bar.start_s < below_s
        if run and not (is_short and bar.start_s - run[-1].end_s < below_s):
            drawn.append(_as_one(run))
            run = []
        if is_short:
            run.append(bar)
        else:
            drawn.append(bar)
    return [*drawn, _as_one(run)] if run else drawn


def _as_one(run: Sequence[Bar]) -> Bar:
    if len(run) == 1:
        return run[0]
    users = {bar.user for bar in run}
    return Bar(
        row=0,
        start_s=run[0].start_s,
        end_s=run[-1].end_s,
        job=f"{len(run):,} short stints",
        user=run[0].user if len(users) == 1 else SEVERAL,
        gpus="of those jobs",
        wait_s=max(bar.wait_s for bar in run),
    )
