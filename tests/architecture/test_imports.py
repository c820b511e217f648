"""`import workbench` is light, and what it offers is loaded when first asked for."""

import subprocess
import sys

import pytest

import workbench

LIST_FOREIGN_MODULES = """
import sys
before = set(sys.modules)
{statement}
roots = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(roots - sys.stdlib_module_names - {{"workbench"}}))
"""


def foreign_modules_after(statement: str) -> list[str]:
    """Names what a statement loads, in a bare Python, besides the standard library and us."""
    script = LIST_FOREIGN_MODULES.format(statement=statement)
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return result.stdout.split()


def test_importing_workbench_loads_only_the_standard_library() -> None:
    assert foreign_modules_after("import workbench") == []


def test_a_heavy_import_would_be_seen() -> None:
    assert "msgspec" in foreign_modules_after("import workbench, msgspec")


def test_importing_workbench_loads_no_part_of_it() -> None:
    script = "import sys, workbench; print(*[n for n in sys.modules if n.startswith('workbench.')])"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []


@pytest.mark.parametrize("name", sorted(set(workbench.__all__)))
def test_every_public_name_can_be_loaded(name: str) -> None:
    assert getattr(workbench, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'gpu'"):
        _ = workbench.gpu


def test_public_names_complete_before_they_are_loaded() -> None:
    assert set(workbench.__all__) <= set(dir(workbench))
