"""Whether JupyterLab shows the sidebar and the Jupyter server has the routes behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from workbench.frontends.cli.checks.verdict import Check, Verdict

EXTENSION: Final = "gpu-workbench"
SERVER_MODULE: Final = "workbench.frontends.server"
_INSTALL: Final = "Run `pip install -U gpu-workbench` in the environment of JupyterLab"


def jupyter_checks() -> list[Check]:
    """Look at the two halves of the JupyterLab extension in this environment."""
    from jupyter_core.paths import jupyter_config_path, jupyter_path

    config = [Path(path) for path in jupyter_config_path()]
    data = [Path(path) for path in jupyter_path("labextensions")]
    return [_sidebar(data, config), _server(config)]


def _sidebar(data: list[Path], config: list[Path]) -> Check:
    found = next((path / EXTENSION for path in data if (path / EXTENSION).exists()), None)
    if found is None:
        return Check(
            name="sidebar",
            verdict=Verdict.PROBLEM,
            message="the JupyterLab extension is not installed in this environment",
            next_step=_INSTALL,
        )
    for settings in _settings(config, "labconfig/page_config.json"):
        disabled = settings.get("disabledExtensions", {})
        names = (
            disabled if isinstance(disabled, list) else [n for n, off in disabled.items() if off]
        )
        if any(str(name).split(":")[0] == EXTENSION for name in names):
            return Check(
                name="sidebar",
                verdict=Verdict.PROBLEM,
                message=f"the JupyterLab extension at {found} is disabled",
                next_step=f"Run `jupyter labextension enable {EXTENSION}`",
            )
    return Check(name="sidebar", verdict=Verdict.OK, message=f"installed at {found}")


def _server(config: list[Path]) -> Check:
    enabled: bool | None = None
    for settings in _settings(config, *_server_files(config)):
        extensions = settings.get("ServerApp", {}).get("jpserver_extensions", {})
        if enabled is None and SERVER_MODULE in extensions:
            enabled = bool(extensions[SERVER_MODULE])
    if enabled:
        return Check(name="server", verdict=Verdict.OK, message="the server extension is enabled")
    state = "disabled" if enabled is False else "not installed in this environment"
    return Check(
        name="server",
        verdict=Verdict.PROBLEM,
        message=f"the Jupyter server extension is {state}: the sidebar would have no data",
        next_step=f"Run `jupyter server extension enable {SERVER_MODULE}`"
        if enabled is False
        else _INSTALL,
    )


def _server_files(config: list[Path]) -> list[str]:
    """Return the names of the files that Jupyter's server merges, the strongest first."""
    parts = {
        part.name
        for directory in config
        for part in (directory / "jupyter_server_config.d").glob("*.json")
    }
    return [
        "jupyter_server_config.json",
        *(f"jupyter_server_config.d/{name}" for name in sorted(parts)),
    ]


def _settings(config: list[Path], *names: str) -> Iterator[dict[str, Any]]:
    """Yield the settings of each file that there is, the strongest directory first."""
    for directory in config:
        for name in names:
            try:
                settings = json.loads((directory / name).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if isinstance(settings, dict):
                yield settings
