"""The first tutorial, run to its end in JupyterLab with a controller, an agent and a kernel."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.conftest import prepare
from tests.browser.lab_page import LabPage
from tests.frontends.server.live_server import REAL, ROOT, LiveServer, live_server
from tests.integration.lab import lab as private_lab

TUTORIAL = ROOT / "tutorials/01_first_schedule.ipynb"
PLACES = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "HOME", "IPYTHONDIR")
NOTEBOOK = "window.jupyterapp.shell.currentWidget"
SHOWN = ("status", "cross-validate", "training", "mistake", "jobs")
"""Cells at the top of the pictures."""
SCROLL_TO = f"""id => {{
    const notebook = {NOTEBOOK}.content;
    const index = notebook.widgets.findIndex(one => one.model.id === id);
    return notebook.scrollToItem(index, 'start', 0);
}}"""


@pytest.fixture
def tutorial(tmp_path: Path) -> Iterator[LiveServer]:
    """JupyterLab on a copy of the tutorial, in a lab of its own."""
    shutil.copy(TUTORIAL, tmp_path)
    # A socket's path has at most 100 bytes: pytest's own folders are too deep.
    with tempfile.TemporaryDirectory(prefix="wb") as root, private_lab(Path(root)) as one:
        environment = {name: one.env[name] for name in PLACES}
        with live_server(
            tmp_path,
            command="lab",
            extension=REAL,
            arguments=prepare(tmp_path),
            environment=environment,
        ) as server:
            yield server


@pytest.mark.timeout(300)
def test_the_tutorial_runs_to_its_end(
    tutorial: LiveServer, context: BrowserContext, shots: Path
) -> None:
    page = LabPage.open(context, tutorial.url(f"lab/tree/{TUTORIAL.name}"))
    page.set_width(300)
    run_all(page)
    for cell in code_cells(page):
        assert cell["execution_count"] is not None, f"{cell['id']} was not run"
        errors = [one for one in cell["outputs"] if one["output_type"] == "error"]
        if "raises-exception" in cell["metadata"].get("tags", []):
            assert len(errors) == 1, f"{cell['id']} raised nothing"
        else:
            assert errors == [], f"{cell['id']}: {errors}"
    page.sidebar.get_by_text("Lately ended").click()
    for name in ("compare", "train", "neighbours"):
        expect(page.sidebar.get_by_role("listitem", name=f"{name} of")).to_be_visible()
    shoot(page, shots)


def run_all(page: LabPage) -> None:
    """Run every cell, as *Run All Cells* does, until the last one has ended."""
    page.page.wait_for_function(
        f"{NOTEBOOK}?.sessionContext?.session?.kernel?.status === 'idle'", timeout=60_000
    )
    # The command's own promise ends at the first error, also at one that the tutorial wants.
    page.page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.page.wait_for_function(
        f"""() => {{
            const cells = [...{NOTEBOOK}.content.model.cells].filter(one => one.type === 'code');
            return cells.every(
                one => one.executionCount !== null && one.executionState === 'idle'
            );
        }}""",
        timeout=180_000,
        polling=200,
    )


def code_cells(page: LabPage) -> list[dict[str, Any]]:
    """Return the notebook's code cells as they are now, also those that are out of sight."""
    text = page.page.evaluate(f"JSON.stringify({NOTEBOOK}.content.model.toJSON())")
    return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def shoot(page: LabPage, shots: Path) -> None:
    """Leave pictures of the outputs in both themes, to be looked at."""
    for theme in ("Light", "Dark"):
        page.use_theme(f"JupyterLab {theme}")
        for cell in SHOWN:
            page.page.evaluate(SCROLL_TO, cell)
            page.shoot(shots / f"tutorial-{theme.lower()}-{cell}.png", whole=True)
