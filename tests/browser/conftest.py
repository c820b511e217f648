"""JupyterLab with the built browser half, a scripted controller, and headless Chromium."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.browser.lab_page import LabPage
from tests.frontends.server.live_server import LiveServer, live_server
from workbench.frontends.server import LABEXTENSION

CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "apputils-extension/themes": {"theme": "JupyterLab Light"},
}


def prepare(place: Path) -> tuple[str, ...]:
    """Lay out what JupyterLab reads, and return the options that make it read that."""
    if not (LABEXTENSION / "package.json").exists():
        pytest.fail("The browser half is not built. Run: cd labextension && npm run build")
    (place / "labextensions").mkdir()
    (place / "labextensions" / "gpu-workbench").symlink_to(LABEXTENSION)
    for name, settings in SETTINGS.items():
        file = place / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings))
    return (
        f"--LabApp.extra_labextensions_path={place / 'labextensions'}",
        "--LabApp.expose_app_in_browser=True",
    )


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A lab whose controller says what a test tells it to."""
    place = tmp_path_factory.mktemp("lab")
    with live_server(place, command="lab", arguments=prepare(place)) as server:
        yield server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    # Per module: Playwright's loop must not be open while an asynchronous test runs.
    path = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser without cookies, in which no script of ours may fail.

    It takes the self-signed certificates of tests.
    """
    context = chromium.new_context(
        viewport={"width": 1000, "height": 1250}, ignore_https_errors=True
    )
    context.set_default_timeout(30_000)
    failures: list[str] = []
    context.on("weberror", lambda failure: failures.append(failure.error.stack or ""))
    yield context
    context.close()
    assert [stack for stack in failures if "extensions/gpu-workbench/" in stack] == []


@pytest.fixture
def page(context: BrowserContext, lab: LiveServer) -> LabPage:
    """JupyterLab with the sidebar open."""
    return LabPage.open(context, lab.url("lab"))


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: `$SCREENSHOTS`, or a folder of this run."""
    named = os.environ.get("SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
