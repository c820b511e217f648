"""What a job's result makes of the notebook's names, and what is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from workbench.boundary import CellError, pack, stage, unpack
from workbench.client import Background, KernelSession
from workbench.client.job import Job, JobFailed, bind
from workbench.core.errors import UserError
from workbench.protocol.job_files import ENDED, write_json
from workbench.transport.paths import jobs_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPEN = "TextIOWrapper is an open file. Close it and open it in the cell that uses it"
LOST = f"is as it was before the cell, for its change cannot come back: {OPEN}"


@pytest.mark.parametrize(
    ("cell", "left", "told"),
    [
        ("xs.append(f)", {"xs": [1], "y": 0}, [f"xs {LOST}"]),
        ("y = f", {"xs": [1]}, [f"y could not come back and is unbound now: {OPEN}"]),
        ("z = f", {"xs": [1], "y": 0}, [f"z could not come back: {OPEN}"]),
        ("xs.append(f)\nxs = 5", {"xs": 5, "y": 0}, [f"what xs was {LOST}"]),
        ("xs.append(f)\ndel xs", {"y": 0}, [f"what xs was {LOST}"]),
        (
            "xs.append(f)\nxs = f",
            {"y": 0},
            [f"xs could not come back and is unbound now: {OPEN}", f"what xs was {LOST}"],
        ),
    ],
)
def test_a_lost_change_and_a_lost_name_are_told_apart(
    tmp_path: Path, cell: str, left: dict[str, Any], told: list[str]
) -> None:
    kernel: dict[str, Any] = {"xs": [1], "y": 0}
    home: dict[str, Any] = {}
    crossing = pack(kernel, ["xs", "y"])
    crossing.write(tmp_path)
    arrival = unpack(tmp_path, home)
    with (tmp_path / "out").open("w") as file:
        exec(cell, {"f": file}, home)
        arrival.pack_back(tmp_path, names=[name for name in "xyz" if name in home], deleted=[])
    assert bind(stage(crossing, tmp_path), kernel) == told
    assert kernel == left


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Job]:
    """Make a job that has ended; what its code raised is written by the test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    directory = jobs_directory() / ("a" * 32)
    directory.mkdir()
    write_json(directory / ENDED, {"outcome": "failed", "detail": "it raised"})
    background = Background()
    yield Job(directory.name, session=KernelSession(modules=list), background=background)
    background.close()


@pytest.mark.parametrize("kind", [TimeoutError, KeyboardInterrupt, UserError])
def test_what_the_jobs_code_raised_keeps_its_traceback_and_its_cause(
    job: Job, kind: type[BaseException]
) -> None:
    pack({}, []).write(job.directory)
    arrival = unpack(job.directory, {})
    error = kind("theirs")
    error.__cause__ = ValueError("why")
    lines = ["Cell In[1], line 7", "theirs"]
    shown = CellError(exception=error, traceback_lines=lines)
    arrival.pack_back(job.directory, names=[], deleted=[], error=shown)
    with pytest.raises(kind, match="theirs") as caught:
        job.result()
    assert caught.value._render_traceback_() == lines  # type: ignore[attr-defined]
    assert str(caught.value.__cause__) == "why"


def test_what_is_wrong_with_the_job_itself_is_shown_as_one_sentence(job: Job) -> None:
    with pytest.raises(JobFailed) as caught:
        job.result()
    [sentence] = caught.value._render_traceback_()  # type: ignore[attr-defined]
    assert sentence.startswith("JobFailed: the job ended: it raised; nothing of it came back")
