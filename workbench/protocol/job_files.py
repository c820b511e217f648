"""A job's directory: its files, and who writes each. Standard library only.

    job.json        the client, before Stage      what to run (`CellSpec` as JSON)
    inputs.pickle   the client, before Stage      the names that the cell reads
    buffers.bin     the client, before Stage      large arrays of inputs.pickle
    lease.json      the agent, at the grant       created exclusively: a lease starts once
    shim.json       the shim, first thing         pid, start time, boot id
    stop.json       the agent, before it stops    how a stop is to be told: outcome, detail
    output.jsonl    home and shim, appending      one JSON object a line, see below
    result.pickle   the home, atomically          what the cell bound and changed
    ended.json      the shim, atomically          how the job ended
    fault.txt       the home, at its fault        traceback of a home that failed by itself
    dask/           shim, home and workers        where they meet, see `graphs/run_files.py`

Lines of output.jsonl, by `kind`:
    stream          name (stdout|stderr), text
    display         data, metadata, transient, update (bool)
    result          data, metadata         the value of a last expression
    clear           wait (bool)
    progress        done, total, what      statements or tasks finished so far
    place           what, where            "task 3" ran on "worker-0", for the timeline;
                    start_unix_s, end_unix_s
    error           etype, text, traceback (rendered lines)
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

JOB: Final = "job.json"
INPUTS: Final = "inputs.pickle"
BUFFERS: Final = "buffers.bin"
LEASE: Final = "lease.json"
SHIM: Final = "shim.json"
STOP: Final = "stop.json"
OUTPUT: Final = "output.jsonl"
RESULT: Final = "result.pickle"
ENDED: Final = "ended.json"
FAULT: Final = "fault.txt"

LAST_VALUE: Final = "_gpu_schedule_result"
"""The home binds the last expression's value to this name (unless it is None), so that it comes
back with the others; the kernel takes it out and displays it as its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSpec:
    """What a cell job runs, as the client staged it.

    Attributes:
        protocol: `messages.PROTOCOL` of the client.
        job: The job id.
        session: The kernel session whose zygote forks the shim.
        source: The body after IPython's transformation.
        raw: The body as the user typed it, for tracebacks.
        head: The lines above the body as the user typed them, for tracebacks.
        filename: What tracebacks name (the kernel's compile name of this cell).
        first_line: Line number of the body's first line in the user's cell.
        execution_count: The kernel's, for "Cell In[n]".
        plan: `protocol.plan.Plan` as a JSON object.
        future_flags: For `compile`: `from __future__` of the notebook's earlier cells.
    """

    protocol: int
    job: str
    session: str
    source: str
    raw: str
    filename: str
    first_line: int
    execution_count: int
    head: str = ""
    plan: dict[str, Any]
    future_flags: int = 0


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write `value` to `path` so that a reader sees all of it or nothing; mode 0600."""
    temporary = path.with_name(path.name + ".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def create_json(path: Path, value: dict[str, Any]) -> bool:
    """Write `value` to `path` unless there is such a file; whether this call wrote it.

    The file appears whole and only once, whoever else tries; mode 0600.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.touch(mode=0o600)
    try:
        temporary.write_text(json.dumps(value), encoding="utf-8")
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    return True


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in `path`, or None where there is no such file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    value: dict[str, Any] = json.loads(text)
    return value


def write_spec(directory: Path, spec: CellSpec) -> None:
    """Write job.json."""
    write_json(directory / JOB, asdict(spec))


def read_spec(directory: Path) -> CellSpec:
    """Read job.json."""
    value = read_json(directory / JOB)
    if value is None:
        raise FileNotFoundError(directory / JOB)
    return CellSpec(**value)
