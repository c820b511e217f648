"""Every tutorial, run from top to bottom on this machine: what it shows is what is stored in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.tutorials.notebooks import CELL_TIMEOUT_S, TUTORIALS, own_lab

SANITIZE = Path(__file__).with_name("sanitize.cfg")
IGNORED = "nbval-ignore-output"
each_tutorial = pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)


@pytest.mark.timeout(400)
@each_tutorial
def test_a_tutorial_shows_what_is_stored_in_it(path: Path) -> None:
    with own_lab() as lab:
        shutil.copy(path, lab.work)
        (lab.work / "pytest.ini").touch()  # The project's own settings are for its own tests.
        run = subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "pytest",
                    "--quiet",
                    "-p",
                    "no:cacheprovider",
                    "-p",
                    "no:asyncio",
                ),
                *("--nbval", "--nbval-current-env", f"--nbval-cell-timeout={CELL_TIMEOUT_S}"),
                f"--nbval-sanitize-with={SANITIZE}",
                path.name,
            ],
            cwd=lab.work,
            env=lab.env,
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stdout + run.stderr


@each_tutorial
def test_a_tutorial_has_been_run_and_most_of_it_is_compared(path: Path) -> None:
    cells = [one for one in nbformat.read(path, as_version=4).cells if one.cell_type == "code"]
    counts = [cell.execution_count for cell in cells]
    assert counts == list(range(1, len(cells) + 1)), "not run from top to bottom: see notebooks.py"
    shown = [cell for cell in cells if cell.outputs]
    ignored = [cell.id for cell in shown if IGNORED in cell.metadata.get("tags", [])]
    assert len(ignored) <= len(shown) // 5, f"these outputs are not compared: {ignored}"


def test_these_are_the_tutorials() -> None:
    assert [path.stem for path in TUTORIALS] == ["01_first_schedule", "05_priorities"]
