"""A kernel that got no GPU in time, and the word that its GPU is ready, in a simulated lab."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from tests.browser.conftest import prepare
from tests.browser.lab_page import LabPage
from tests.frontends.server import scenes
from tests.frontends.server.live_server import REAL, LiveServer, live_server
from tests.frontends.server.scenes import Scene
from tests.integration.lab import lab as private_lab
from workbench.protocol.messages import JobView, RequestSpec

PLACES = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "HOME", "IPYTHONDIR")
KERNEL = "hasty"
NAME = "Python 3 (hasty GPU lease)"
SPEC = Path(__file__).parents[2] / "kernels/specs/gpu-lease/kernel.json"
EMPTY = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
BELL = ".jp-Notification-Status"
"""In the status bar; counts what JupyterLab's list of notifications holds."""


@pytest.fixture
def one_gpu(tmp_path: Path) -> Iterator[LiveServer]:
    """JupyterLab in a lab of its own with one simulated GPU and a kernel that hardly waits."""
    spec = json.loads(SPEC.read_text()) | {"display_name": NAME}
    spec["metadata"]["kernel_provisioner"]["config"]["wait_s"] = 1
    kernel = tmp_path / "data" / "kernels" / KERNEL
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(json.dumps(spec))
    (tmp_path / "work").mkdir()
    for name in ("holder.ipynb", "work/train.ipynb"):
        (tmp_path / name).write_text(json.dumps(EMPTY))
    # A socket's path has at most 100 bytes: pytest's own folders are too deep.
    with tempfile.TemporaryDirectory(prefix="wb") as root, private_lab(Path(root)) as one:
        up = one.workbench("up", "--simulate", "1xA100-SXM4-80GB")
        assert up.returncode == 0, up.stderr
        with live_server(
            tmp_path,
            command="lab",
            extension=REAL,
            arguments=prepare(tmp_path),
            environment={name: one.env[name] for name in PLACES},
        ) as server:
            yield server


@pytest.mark.timeout(180)
def test_a_page_says_when_a_kernels_gpu_is_ready_and_starts_it_there(
    one_gpu: LiveServer, context: BrowserContext, shots: Path
) -> None:
    page = LabPage.open(context, one_gpu.url("lab"))
    page.set_width(300)
    open_notebook(page, "holder.ipynb")
    refused = refused_start(page, "work/train.ipynb")
    page.shoot(shots / "ready-refused.png", whole=True)
    refused.get_by_role("button", name="Ok").click()
    refused.get_by_role("combobox").select_option(label="Python 3 (ipykernel)")
    refused.get_by_role("button", name="Select").click()
    wait_for_kernel(page, "python3")
    ticket = page.sidebar.get_by_role("listitem", name=NAME).filter(has_text="train.ipynb")
    expect(ticket).to_contain_text("next")
    expect(told(page)).to_have_count(0)

    shut_down(page, "holder.ipynb")
    expect(told(page)).to_contain_text("The GPU for train.ipynb is ready. Start its kernel by ")
    expect(ticket.locator(".gw-chip")).to_have_text("ready")
    start = told(page).get_by_role("button", name="Start kernel")
    for theme in ("Dark", "Light"):
        page.use_theme(f"JupyterLab {theme}")
        start.hover()  # Waits until the notification stands still and nothing lies over it.
        page.shoot(shots / f"ready-{theme.lower()}.png", whole=True)

    start.click()
    page.page.get_by_role("button", name="Replace the kernel").click()
    wait_for_kernel(page, KERNEL)
    expect(ticket.locator(".gw-chip")).to_have_text("running")
    expect(told(page)).to_have_count(0)
    expect(page.page.locator(BELL)).to_have_text("0")


@pytest.mark.timeout(180)
def test_a_closed_notebook_is_opened_for_its_kernel(
    one_gpu: LiveServer, context: BrowserContext
) -> None:
    page = LabPage.open(context, one_gpu.url("lab"))
    open_notebook(page, "holder.ipynb")
    refused = refused_start(page, "work/train.ipynb")
    refused.get_by_role("button", name="Ok").click()
    refused.get_by_role("button", name="No Kernel").click()
    shut_down(page, "holder.ipynb")
    expect(told(page)).to_have_count(1)
    elsewhere = LabPage.open(context, one_gpu.url("lab"))
    told(elsewhere).get_by_role("button", name="Start kernel").click()
    wait_for_kernel(elsewhere, KERNEL)
    expect(elsewhere.page.get_by_role("tab", name="train.ipynb")).to_be_visible()
    for each in (page, elsewhere):
        expect(told(each)).to_have_count(0)
        expect(each.page.locator(BELL)).to_have_text("0")


def test_a_ready_gpu_is_told_once_and_taken_back_when_it_was_given_back_or_is_over(
    lab: LiveServer, page: LabPage
) -> None:
    mine = ticket(1)
    lab.show(lab_with(mine, ticket(2, owner="bob", mine=False)))
    expect(told(page)).to_contain_text("The GPU for train_digits.ipynb is ready. Ask for it again")
    lab.show(lab_with(mine, ticket(3)))
    expect(told(page)).to_have_count(2)
    lab.show(lab_with(mine))
    expect(told(page)).to_have_count(1)
    told(page).get_by_role("button", name="Give it back").click()
    ended = page.sidebar.get_by_text("Lately ended")
    expect(ended).to_be_visible()
    expect(told(page)).to_have_count(0)
    expect(page.page.locator(BELL)).to_have_text("0")


def ticket(number: int, **rest: Any) -> JobView:
    request = RequestSpec(kind="kernel", gpus=1, wait_limit_s=600)
    return scenes.running(
        number, [number], state="starting", started_unix_s=None, request=request, **rest
    )


def lab_with(*jobs: JobView) -> Scene:
    return Scene(devices=[scenes.device(index) for index in range(4)], jobs=list(jobs))


def told(page: LabPage) -> Locator:
    """The notifications that a GPU is ready."""
    return page.page.get_by_role("alert").filter(has_text="is ready")


def open_notebook(page: LabPage, path: str) -> None:
    """Open a notebook with the hasty kernel."""
    begin_to_open(page, path)
    wait_for_kernel(page, KERNEL)


def refused_start(page: LabPage, path: str) -> Locator:
    """Open a notebook with the hasty kernel, which gets no GPU; return JupyterLab's dialog."""
    begin_to_open(page, path)
    dialog = page.page.get_by_role("dialog")
    expect(dialog).to_contain_text("place 1 in line")
    expect(dialog).to_contain_text("The ticket is kept for 10 min")
    return dialog


def begin_to_open(page: LabPage, path: str) -> None:
    page.page.evaluate(
        "args => void window.jupyterapp.commands.execute('docmanager:open', args)",
        {"path": path, "kernel": {"name": KERNEL}},
    )


def shut_down(page: LabPage, path: str) -> None:
    """Shut the kernel of a notebook down, as the list of running kernels does."""
    page.page.evaluate(
        """async path => {
            const { sessions } = window.jupyterapp.serviceManager;
            const model = [...sessions.running()].find(one => one.path === path);
            await sessions.shutdown(model.id);
        }""",
        path,
    )


def wait_for_kernel(page: LabPage, name: str) -> None:
    """Wait until the notebook in front has such a kernel, and it is idle."""
    page.page.wait_for_function(
        """name => {
            const notebook = window.jupyterapp.shell.currentWidget;
            const kernel = notebook?.sessionContext?.session?.kernel;
            return kernel?.name === name && kernel.status === 'idle';
        }""",
        arg=name,
        timeout=60_000,
    )
