"""How the page reaches the server half, and what it says where it cannot."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, WebSocket, expect

from tests.browser.conftest import prepare
from tests.browser.front_proxy import certificate, front_proxy
from tests.browser.lab_page import LabPage
from tests.frontends.server import scenes
from tests.frontends.server.live_server import LiveServer, live_server

HUB_PREFIX = "/user/zo%C3%AB%40lab/lab2/"


def sockets_of(context: BrowserContext) -> list[WebSocket]:
    """Return a list that grows with each of our websockets that a page of `context` opens."""
    sockets: list[WebSocket] = []

    def note(socket: WebSocket) -> None:
        if "gpu-workbench" in socket.url:
            sockets.append(socket)

    context.on("page", lambda page: page.on("websocket", note))
    return sockets


def shows_four_gpus(page: LabPage) -> None:
    expect(page.sidebar.get_by_role("heading", name="4 GPUs")).to_be_visible()


def test_a_page_under_a_hub_prefix_behind_a_proxy_that_ends_tls_uses_wss(
    tmp_path: Path, context: BrowserContext
) -> None:
    # rapidsai/jupyterlab-nvdashboard#192, NERSC/jupyterlab-slurm#29, dask/dask-labextension#81
    sockets = sockets_of(context)
    with (
        live_server(
            tmp_path, command="lab", arguments=prepare(tmp_path), base_url=HUB_PREFIX
        ) as server,
        front_proxy(server.port, tls=certificate(tmp_path)) as proxy,
    ):
        assert server.base_url == HUB_PREFIX
        server.show(scenes.busy_lab())
        page = LabPage.open(context, dataclasses.replace(server, origin=proxy.origin).url("lab"))
        shows_four_gpus(page)
        (socket,) = sockets
        where = f"{proxy.origin}{HUB_PREFIX}gpu-workbench/api/watch".replace("https:", "wss:")
        assert socket.url.partition("?")[0] == where
        assert page.sidebar.get_by_role("status").inner_text() == ""
        cancel(page, "score")


def test_where_a_proxy_refuses_websockets_the_page_polls_and_says_so(
    lab: LiveServer, context: BrowserContext, shots: Path
) -> None:
    lab.show(scenes.one_gpu())
    with front_proxy(lab.port, refuse_upgrade=True) as proxy:
        page = LabPage.open(context, dataclasses.replace(lab, origin=proxy.origin).url("lab"))
        expect(page.sidebar.get_by_role("status")).to_contain_text("websocket) was refused")
        assert proxy.refused > 0
        lab.show(scenes.busy_lab())
        shows_four_gpus(page)
        page.shoot(shots / "polling.png")
        cancel(page, "score")


def cancel(page: LabPage, name: str) -> None:
    page.sidebar.get_by_role("button", name=f"Cancel {name}").click()
    expect(page.sidebar.get_by_role("button", name=f"Cancel {name}")).to_have_count(0)


def test_where_the_server_half_is_missing_the_panel_says_which_and_how_to_add_it(
    tmp_path: Path, context: BrowserContext, shots: Path
) -> None:
    # rapidsai/jupyterlab-nvdashboard#136, NERSC/jupyterlab-slurm#49
    with live_server(
        tmp_path, command="lab", arguments=prepare(tmp_path), extension=None
    ) as server:
        page = LabPage.open(context, server.url("lab"))
        said = page.sidebar.get_by_role("alert")
        expect(said).to_contain_text("The server half is missing")
        expect(said).to_contain_text("jupyter server extension enable workbench.frontends.server")
        expect(said).to_contain_text("pip install gpu-workbench")
        expect(page.status_text).to_have_text("GPU: not known")
        for width in (300, 180):
            page.set_width(width)
            assert page.overflow_px() == 0
            page.shoot(shots / f"server-half-missing-{width}.png")


def test_a_controller_that_cannot_be_reached_is_told_with_the_next_step_until_it_is_back(
    lab: LiveServer, page: LabPage, shots: Path
) -> None:
    lab.show(scenes.busy_lab())
    shows_four_gpus(page)
    lab.fail(
        "The lab's controller, named by /etc/gpu-workbench.toml, does not answer on its socket",
        "Tell whoever keeps this host; your running jobs go on",
    )
    said = page.sidebar.get_by_role("status")
    expect(said).to_contain_text("does not answer on its socket")
    expect(said).to_contain_text("Tell whoever keeps this host; your running jobs go on")
    expect(said).to_contain_text("No news for ")
    expect(page.status_text).to_have_text("GPU: not known")
    shows_four_gpus(page)  # the last figures stay, drawn pale
    for theme in ("Light", "Dark"):
        page.use_theme(f"JupyterLab {theme}")
        for width in (300, 180):
            page.set_width(width)
            assert page.overflow_px() == 0
            page.shoot(shots / f"controller-gone-{theme.lower()}-{width}.png")
    lab.show(scenes.one_gpu())
    expect(page.sidebar.get_by_role("heading", name="1 GPU")).to_be_visible()
    expect(said).to_have_text("")


def test_a_page_opens_one_websocket_and_closes_it_while_it_is_hidden(
    lab: LiveServer, context: BrowserContext
) -> None:
    # rapidsai/jupyterlab-nvdashboard: a timer for each open widget and tab
    sockets = sockets_of(context)
    lab.show(scenes.busy_lab())
    page = LabPage.open(context, lab.url("lab"))
    shows_four_gpus(page)
    assert len(sockets) == 1
    set_hidden(page, hidden=True)
    wait_until(page, sockets[0].is_closed)
    lab.show(scenes.one_gpu())
    set_hidden(page, hidden=False)
    expect(page.sidebar.get_by_role("heading", name="1 GPU")).to_be_visible()
    assert len(sockets) == 2


def set_hidden(page: LabPage, *, hidden: bool) -> None:
    """Make the page believe that it is a tab in the background, or that it no longer is."""
    page.page.evaluate(
        """hidden => {
            Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
            document.dispatchEvent(new Event('visibilitychange'));
        }""",
        hidden,
    )


def wait_until(page: LabPage, is_so: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_so():
            return
        page.page.wait_for_timeout(20)
    pytest.fail("waited 10 s in vain")
