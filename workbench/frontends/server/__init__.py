"""The Jupyter server's half of the sidebar: routes under `gpu-workbench/api/`.

It loads whatever else of Workbench is broken: at server start only `handlers.py` is imported.
The controller is looked for, in `relay.py`, when the first browser asks. Read `handlers.py` first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

    from workbench.frontends.server.relay import Connect

LABEXTENSION = Path(__file__).parent / "labextension"
"""Where npm builds the browser half; a wheel carries it to `share/jupyter/labextensions`."""


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Say which modules are extensions; jupyter_server calls this."""
    return [{"module": "workbench.frontends.server"}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Say where the built browser half is; `jupyter labextension develop` calls this."""
    return [{"src": LABEXTENSION.name, "dest": "gpu-workbench"}]


def _load_jupyter_server_extension(server: ServerApp) -> None:
    """Add the routes; jupyter_server calls this once at start."""
    add_routes(server)
    # Jobs name notebooks by absolute paths, pages by paths below this one.
    page_config = server.web_app.settings.setdefault("page_config_data", {})
    page_config["gpuWorkbenchRoot"] = server.root_dir
    server.log.info("GPU Workbench: ready; the controller is looked for when a page asks")


def add_routes(server: ServerApp, connect: Connect | None = None) -> None:
    """Add Workbench's routes to a Jupyter server.

    Args:
        server: The server; its `base_url` is put before each route.
        connect: Makes a connection to the controller; None for the user's own controller.
    """
    from workbench.frontends.server.handlers import LazyRelay, routes

    lazy = LazyRelay(connect, server.log)
    server.web_app.add_handlers(".*$", routes(server.base_url, lazy))  # type: ignore[no-untyped-call]
