"""The contracts of `[tool.importlinter]` hold, and each of them notices when it is broken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

OFFENCES = {
    "a layer imports upwards": (
        "workbench/core/errors.py",
        "import workbench.protocol.messages",
        "Layers",
    ),
    "the core reads a clock": ("workbench/core/model.py", "import time", "pure"),
    "a policy draws a random number": ("workbench/policies/__init__.py", "import random", "pure"),
    "a front-end knows another": (
        "workbench/frontends/cli/__init__.py",
        "import workbench.frontends.magics",
        "do not know one another",
    ),
    "a front-end passes the client by": (
        "workbench/frontends/cli/__init__.py",
        "import workbench.controller",
        "only through the client",
    ),
    "a kernel passes the client by": (
        "kernels/workbench_kernels/__init__.py",
        "import workbench.agent",
        "only through the client",
    ),
    "pynvml is imported elsewhere": (
        "workbench/controller/__init__.py",
        "import pynvml",
        "pynvml",
    ),
    "two modules import each other": (
        "workbench/core/model.py",
        "import workbench.core.decisions",
        "No cycles",
    ),
    "a package has no layer": ("workbench/helpers.py", "", "Layers"),
}


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    """Runs import-linter on a tree, whose packages go before the installed ones."""
    path = os.pathsep.join([str(tree), str(tree / "kernels")])
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache", "--no-logo"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def broken_contracts(report: str) -> list[str]:
    return [line for line in report.splitlines() if " BROKEN" in line]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages and their contracts, to break."""
    ignore = shutil.ignore_patterns("__pycache__", "labextension")
    for package in ("workbench", "kernels/workbench_kernels"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_tree_keeps_every_contract() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("offence", OFFENCES)
def test_an_offending_import_breaks_its_contract(tree: Path, offence: str) -> None:
    file, line, contract = OFFENCES[offence]
    with (tree / file).open("a") as source:
        source.write(f"\n{line}\n")
    result = lint_imports(tree)
    assert result.returncode != 0
    assert contract in " ".join(broken_contracts(result.stdout)) + result.stderr, result.stdout
