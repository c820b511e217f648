"""The two halves of the extension name each other and the one version."""

from __future__ import annotations

import json
from pathlib import Path

import workbench
from workbench.frontends import server

ROOT = Path(__file__).parents[3]
PACKAGE = json.loads((ROOT / "labextension" / "package.json").read_text())


def test_the_browser_half_has_the_version_of_the_package() -> None:
    assert PACKAGE["version"] == workbench.__version__


def test_the_browser_half_is_built_where_the_server_half_looks_for_it() -> None:
    built = (ROOT / "labextension" / PACKAGE["jupyterlab"]["outputDir"]).resolve()
    assert built == server.LABEXTENSION
    (path,) = server._jupyter_labextension_paths()
    assert Path(server.__file__).parent / path["src"] == built
    assert path["dest"] == PACKAGE["name"]


def test_the_configuration_that_the_wheel_carries_switches_this_extension_on() -> None:
    carried = json.loads((ROOT / "jupyter-config" / "gpu-workbench.json").read_text())
    (point,) = server._jupyter_server_extension_points()
    assert carried["ServerApp"]["jpserver_extensions"] == {point["module"]: True}


def test_the_lockfile_names_no_registry() -> None:
    assert "://" not in "".join(
        line
        for line in (ROOT / "labextension" / "package-lock.json").read_text().splitlines()
        if '"resolved"' in line
    )
