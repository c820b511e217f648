"""Traces in files: our CSV, the Standard Workload Format, a lab's journal; gzip is opened.

The format is told from the content, never from the file's name.

Source: the Standard Workload Format 2.2, https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NoReturn

from workbench.core.model import PriorityClass
from workbench.simulate.errors import BadTrace
from workbench.simulate.history import read_history
from workbench.simulate.workload import LeftOut, SimJob, Trace, Workload

COLUMNS: Final = ("job_id", "submit_s", "duration_s", "gpus")
"""What a CSV must have; `user`, `group`, `status`, `class`, `min_gpus`, `idle_from_s`, `idle_for_s`
and `reports_progress` (true or false) it may have, no other is read."""
_TRUTH: Final = {"": False, "false": False, "true": True}

_GZIP: Final = b"\x1f\x8b"
_SQLITE: Final = b"SQLite format 3\0"
_HEAD_BYTES: Final = 1 << 16
_MOST_GPUS: Final = 1 << 20
_FORMATS: Final = (
    f"A trace is a CSV with the columns {', '.join(COLUMNS)}, a file in the Standard Workload "
    "Format, or a lab's journal"
)

_SWF_FIELDS: Final = 18
_SWF_COMMENT: Final = ";"
_UNKNOWN: Final = -1
_SWF_STATUS: Final = {0: "failed", 1: "completed", 5: "cancelled"}
_SWF_BURSTS: Final = frozenset({2, 3, 4})
"""Parts of a job that was swapped out; the job has a line of its own with their sum."""


def read_trace(path: Path) -> Trace:
    """Read a trace in whichever format it is.

    Args:
        path: Of the file.

    Returns:
        Its jobs, sorted, and what was left out.

    Raises:
        BadTrace: It cannot be read; the message names the line and column at fault.
        PeerError: It is a journal, and the disk or SQLite failed.
    """
    with _readable(path):
        with path.open("rb") as file:
            first = file.read(len(_SQLITE))
        if first == _SQLITE:
            return read_history(path)
        zipped = first.startswith(_GZIP)
        with gzip.open(path, "rb") if zipped else path.open("rb") as file:
            head = file.read(_HEAD_BYTES).decode("latin-1")
        if _is_swf(head):
            # The archive's older headers are in whatever its authors wrote; the fields are ASCII.
            with _text(path, zipped=zipped, encoding="latin-1") as lines:
                return _read_swf(path, lines)
        with _text(path, zipped=zipped, encoding="utf-8-sig") as lines:
            return _read_csv(path, lines)


def _is_swf(head: str) -> bool:
    first = next((line for line in head.splitlines() if line.strip()), "")
    return first.lstrip().startswith(_SWF_COMMENT) or len(first.split()) == _SWF_FIELDS


def _text(path: Path, *, zipped: bool, encoding: str) -> IO[str]:
    if zipped:
        return gzip.open(path, "rt", encoding=encoding, newline="")
    return path.open("r", encoding=encoding, newline="")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what opening and decoding a file may raise into one error that names it."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise BadTrace(
            f"{path} is not text in UTF-8 (byte {error.start})", next_step=_FORMATS
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadTrace(f"{path} is a damaged gzip file", next_step="Fetch it again") from error
    except OSError as error:
        raise BadTrace(
            f"{path} cannot be read: {error.strerror or error}",
            next_step="Give the path of a trace, or the word journal for your own lab's",
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row of a file, to name in an error."""

    path: Path
    line: int

    def refuse(self, column: str, text: str, rule: str) -> NoReturn:
        """Raise the error that names file, line, column, value and rule."""
        raise BadTrace(
            f"{self.path}, line {self.line}, column {column}: {text[:40]!r} is not {rule}",
            next_step="Mend or remove that line",
        )

    def number(self, column: str, text: str, *, least: float) -> float:
        """Return a finite number of at least `least`."""
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number < least:
            self.refuse(column, text, f"a number of at least {least:g}")
        return number

    def count(self, column: str, text: str, *, least: int) -> int:
        """Return a whole number of at least `least`, which `4.0` also is."""
        number = self.number(column, text, least=least)
        if number != int(number) or number > _MOST_GPUS:
            self.refuse(column, text, f"a whole number from {least} to {_MOST_GPUS:,}")
        return int(number)


def _read_csv(path: Path, lines: Iterable[str]) -> Trace:
    reader = csv.reader(lines)
    names = [name.strip() for name in next(reader, [])]
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise BadTrace(f"{path}, line 1: no column {', '.join(missing)}", next_step=_FORMATS)
    jobs: list[SimJob] = []
    without = 0
    try:
        for cells in reader:
            if not cells:
                continue
            job = _csv_job(_Row(path=path, line=reader.line_num), names, cells)
            if job.gpus:
                jobs.append(job)
            else:
                without += 1
    except csv.Error as error:
        raise BadTrace(
            f"{path}, line {reader.line_num}: {error}", next_step="Mend or remove that line"
        ) from error
    return _trace(path, jobs, {"asking for no GPU": without})


def _csv_job(row: _Row, names: list[str], cells: list[str]) -> SimJob:
    if len(cells) != len(names):
        row.refuse(
            str(min(len(cells), len(names)) + 1),
            ",".join(cells),
            f"a row of {len(names)} columns, as line 1 has",
        )
    given = dict(zip(names, (cell.strip() for cell in cells), strict=True))
    column = {name: f"{names.index(name) + 1} ({name})" for name in COLUMNS}
    if not given["job_id"]:
        row.refuse(column["job_id"], "", "an id")
    gpus = row.count(column["gpus"], given["gpus"], least=0)
    return SimJob(
        id=given["job_id"],
        submit_s=row.number(column["submit_s"], given["submit_s"], least=0.0),
        service_s=row.number(column["duration_s"], given["duration_s"], least=0.0),
        gpus=gpus,
        user=given.get("user", ""),
        group=given.get("group", ""),
        status=given.get("status", ""),
        min_gpus=_min_gpus(row, given.get("min_gpus", ""), gpus),
        priority=_class(row, names, given.get("class", "")),
        idle_from_s=_seconds(row, given, "idle_from_s"),
        idle_for_s=_seconds(row, given, "idle_for_s") or 0.0,
        reports_progress=_truth(row, given, "reports_progress"),
    )


def _seconds(row: _Row, given: dict[str, str], name: str) -> float | None:
    text = given.get(name, "")
    return row.number(name, text, least=0.0) if text else None


def _truth(row: _Row, given: dict[str, str], name: str) -> bool:
    text = given.get(name, "")
    if text.lower() not in _TRUTH:
        row.refuse(name, text, "true, false or empty")
    return _TRUTH[text.lower()]


def _class(row: _Row, names: list[str], text: str) -> PriorityClass:
    """Return the class that a cell names; an empty one is that of most jobs."""
    if not text:
        return PriorityClass.NORMAL
    if text not in list(PriorityClass):
        column = f"{names.index('class') + 1} (class)"
        row.refuse(column, text, f"one of {', '.join(PriorityClass)}")
    return PriorityClass(text)


def _min_gpus(row: _Row, text: str, gpus: int) -> int | None:
    """Return how far a job may be shrunk; an empty cell says that it may not."""
    if not text:
        return None
    least = row.count("min_gpus", text, least=1)
    if least > gpus:
        row.refuse("min_gpus", text, f"at most the job's {gpus} GPUs")
    return least


def _read_swf(path: Path, lines: Iterable[str]) -> Trace:
    jobs: list[SimJob] = []
    left_out: Counter[str] = Counter()
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields or fields[0].startswith(_SWF_COMMENT):
            continue
        found = _swf_job(_Row(path=path, line=number), fields)
        if isinstance(found, SimJob):
            jobs.append(found)
        else:
            left_out[found] += 1
    return _trace(path, jobs, left_out)


def _swf_job(row: _Row, fields: list[str]) -> SimJob | str:
    """Return the job of a line, or why there is none."""
    if len(fields) != _SWF_FIELDS:
        row.refuse(
            str(min(len(fields), _SWF_FIELDS) + 1),
            " ".join(fields),
            f"a line of {_SWF_FIELDS} fields, as the Standard Workload Format has",
        )
    submit_s = row.number("2 (submit time)", fields[1], least=_UNKNOWN)
    run_s = row.number("4 (run time)", fields[3], least=_UNKNOWN)
    allocated = row.count("5 (allocated processors)", fields[4], least=_UNKNOWN)
    requested = row.count("8 (requested processors)", fields[7], least=_UNKNOWN)
    status = row.count("11 (status)", fields[10], least=_UNKNOWN)
    user = row.count("12 (user)", fields[11], least=_UNKNOWN)
    group = row.count("13 (group)", fields[12], least=_UNKNOWN)
    gpus = requested if requested > 0 else allocated
    if status in _SWF_BURSTS:
        return "being a part of a job that has a line of its own"
    if submit_s < 0:
        return "with an unknown submit time"
    if run_s < 0:
        return "with an unknown run time"
    if gpus <= 0:
        return "asking for no processor"
    return SimJob(
        id=fields[0],
        submit_s=submit_s,
        service_s=run_s,
        gpus=gpus,
        user="" if user == _UNKNOWN else f"user{user}",
        group="" if group == _UNKNOWN else f"group{group}",
        status=_SWF_STATUS.get(status, ""),
    )


def _trace(path: Path, jobs: list[SimJob], left_out: dict[str, int]) -> Trace:
    return Trace(
        workload=Workload.of(path.name, jobs),
        left_out=tuple(LeftOut(reason=why, jobs=n) for why, n in left_out.items() if n),
    )
