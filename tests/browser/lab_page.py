"""JupyterLab in a page, as far as these tests touch it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import BrowserContext, Locator, Page  # noqa: TC002  as TC001

from tests.frontends.server.live_server import TOKEN


@dataclass(frozen=True, kw_only=True)
class LabPage:
    """A page that shows JupyterLab with Workbench's sidebar open."""

    page: Page

    @classmethod
    def open(cls, context: BrowserContext, url: str) -> LabPage:
        page = context.new_page()
        page.goto(f"{url}?{urlencode({'token': TOKEN, 'reset': ''})}")
        page.wait_for_selector(".jp-LabShell")
        page.wait_for_function("window.jupyterapp?.commands.hasCommand('gpu-workbench:open')")
        page.evaluate("window.jupyterapp.restored")
        page.evaluate("window.jupyterapp.commands.execute('gpu-workbench:open')")
        page.wait_for_selector("#gpu-workbench-sidebar:visible")
        return cls(page=page)

    @property
    def sidebar(self) -> Locator:
        return self.page.locator("#gpu-workbench-sidebar")

    @property
    def status_text(self) -> Locator:
        return self.page.locator(".gw-status-button")

    def use_theme(self, name: str) -> None:
        self.page.evaluate(
            "name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})",
            name,
        )
        is_light = "Light" in name
        self.page.wait_for_selector(
            f"body[data-jp-theme-light='{str(is_light).lower()}']", state="attached"
        )

    def set_width(self, width_px: int) -> None:
        """Make the sidebar this wide, as its user does with the mouse."""
        self.page.evaluate(
            """px => {
                const { shell } = window.jupyterapp;
                shell.collapseLeft();
                const width = shell._hsplitPanel.node.clientWidth;
                shell._hsplitPanel.setRelativeSizes([0, width - px, px]);
            }""",
            width_px,
        )
        self.page.wait_for_function(
            "px => Math.abs(document.querySelector('#gpu-workbench-sidebar').offsetWidth - px) < 2",
            arg=width_px,
        )

    def overflow_px(self) -> int:
        """By how much the sidebar's content is wider than the sidebar."""
        return self.sidebar.evaluate("node => node.scrollWidth - node.clientWidth")

    def shoot(self, file: Path, *, whole: bool = False) -> None:
        if whole:
            self.page.screenshot(path=file)
        else:
            self.sidebar.screenshot(path=file)
