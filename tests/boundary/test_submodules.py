"""A package that crosses has the submodules that the code on the other side names."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.boundary.two_sides import Notebook


@pytest.fixture
def make_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def make(name: str, *modules: str) -> None:
        for module in (name, *modules):
            path = tmp_path / module
            path.parent.mkdir(exist_ok=True)
            if module == name or any(one.startswith(f"{module}/") for one in modules):
                path.mkdir()
                path = path / "__init__"
            path.with_suffix(".py").write_text("found = __name__\n")
        importlib.invalidate_caches()

    yield make
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("kites", "boats"):
            del sys.modules[name]


def test_the_cell_has_the_submodules_that_it_names(
    notebook: Notebook, make_package: Callable[..., None]
) -> None:
    make_package("kites", "kites/red", "kites/deep", "kites/deep/blue", "kites/heavy")
    notebook.start("import kites.red, kites.deep.blue, kites.heavy, sys")
    notebook.cross(
        "x = kites.red.found, kites.deep.blue.found\nheavy = 'kites.heavy' in sys.modules"
    )
    names = notebook.world.names
    assert (names["x"], names["heavy"]) == (("kites.red", "kites.deep.blue"), False)


def test_a_function_that_crosses_has_the_submodules_that_it_names(
    notebook: Notebook, make_package: Callable[..., None]
) -> None:
    make_package("kites", "kites/red")
    notebook.start("import kites.red\ndef f(): return (lambda: kites.red.found)()")
    notebook.cross("x = f()")
    assert notebook.world.names["x"] == "kites.red"


def test_the_kernel_has_the_submodules_that_the_cell_imported(
    notebook: Notebook, make_package: Callable[..., None]
) -> None:
    make_package("kites", "kites/red", "kites/deep", "kites/deep/blue")
    make_package("boats", "boats/small")
    notebook.start("import kites\ndef f():\n    import boats.small\n    return boats")
    notebook.cross("import kites.red\nimport kites.deep.blue\nboats = f()")
    names = notebook.world.names
    assert names["kites"].red.found == "kites.red"
    assert names["kites"].deep.blue.found == "kites.deep.blue"
    assert names["boats"].small.found == "boats.small"


def test_a_submodule_that_cannot_be_imported_is_missed_where_it_is_used(
    notebook: Notebook, make_package: Callable[..., None], tmp_path: Path
) -> None:
    make_package("kites", "kites/red")
    notebook.start("import kites.red")
    (tmp_path / "kites" / "red.py").write_text("1 / 0\n")
    changes = notebook.cross("x = 1\nkites.red")
    assert notebook.world.names["x"] == 1
    assert changes.error is not None
    assert "no attribute 'red'" in str(changes.error.as_exception())
