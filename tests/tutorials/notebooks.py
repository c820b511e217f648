"""The tutorials, and how one is run in a lab of its own.

`python -m tests.tutorials.notebooks` runs each and stores its outputs anew, and `… 05` only one: do
that after a change of a tutorial or of what it shows, and look at the difference.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tests.integration.lab import Lab, lab

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "tutorials").glob("[0-9][0-9]_*.ipynb"))

CELL_TIMEOUT_S = 120


@contextmanager
def own_lab() -> Iterator[Lab]:
    """A lab in a short path (a socket's path has at most 100 bytes)."""
    with tempfile.TemporaryDirectory(prefix="wb") as root, lab(Path(root)) as one:
        yield one


def store_outputs(path: Path, env: dict[str, str], work: Path) -> None:
    """Run a tutorial and write it back with the outputs of this run."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(work)}},
    )
    client.execute(env=env)
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for one in (path for path in TUTORIALS if path.name.startswith(tuple(sys.argv[1:]) or "")):
        with own_lab() as private:
            os.environ.update(private.env)
            store_outputs(one, private.env, private.work)
        print(f"stored the outputs of {one.name}")
