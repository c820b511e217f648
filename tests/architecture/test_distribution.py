"""The distributions carry all that a user needs, and making a wheel of them needs no Node."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = "workbench/frontends/server/labextension"


def build(tree: Path, kind: str, into: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Builds a distribution where no program but Python can be found."""
    return subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", into, tree],
        env={**os.environ, "PATH": str(into), **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("sdist")
    result = build(ROOT, "sdist", into)
    assert result.returncode == 0, result.stdout + result.stderr
    (file,) = into.glob("*.tar.gz")
    return file


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(into, filter="data")
    (tree,) = into.iterdir()
    return tree


@pytest.fixture(scope="module")
def wheel_names(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What is in the wheel, with the name of its data folder taken off."""
    into = tmp_path_factory.mktemp("wheel")
    result = build(unpacked, "wheel", into)
    assert result.returncode == 0, result.stdout + result.stderr
    (file,) = into.glob("*.whl")
    data = "-".join(file.name.split("-")[:2]) + ".data/data/"
    return {name.removeprefix(data) for name in zipfile.ZipFile(file).namelist()}


def test_the_wheel_carries_every_module(wheel_names: set[str]) -> None:
    for folder in (ROOT, ROOT / "kernels"):
        for package in ("workbench", "workbench_kernels"):
            modules = (folder / package).rglob("*.py")
            assert {str(file.relative_to(folder)) for file in modules} <= wheel_names


def test_the_wheel_carries_the_built_labextension(wheel_names: set[str]) -> None:
    extension = "share/jupyter/labextensions/gpu-workbench"
    assert f"{extension}/package.json" in wheel_names
    assert any(name.startswith(f"{extension}/static/remoteEntry") for name in wheel_names)
    assert f"{BUILT}/package.json" in wheel_names  # where the server looks for its other half


def test_the_wheel_switches_the_server_extension_on(wheel_names: set[str]) -> None:
    assert "etc/jupyter/jupyter_server_config.d/gpu-workbench.json" in wheel_names


def test_the_wheel_carries_every_kernelspec(wheel_names: set[str]) -> None:
    specs = sorted((ROOT / "kernels/specs").glob("*/*"))
    assert specs
    assert {f"share/jupyter/kernels/{f.parent.name}/{f.name}" for f in specs} <= wheel_names


def test_a_tree_without_the_built_labextension_makes_no_wheel(
    unpacked: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(unpacked, tree, ignore=shutil.ignore_patterns("labextension"))
    result = build(tree, "wheel", tmp_path, HATCH_JUPYTER_BUILDER_SKIP_NPM="1")
    assert result.returncode != 0
    assert not list(tmp_path.glob("*.whl"))
