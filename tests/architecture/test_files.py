"""Source files stay short enough to read in one go."""

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_LINES = 400
SOURCES = {
    "workbench": "*.py",
    "kernels": "*.py",
    "tests": "*.py",
    "labextension/src": "*.ts*",
    "labextension/tests": "*.ts*",
}


def too_long(root: Path) -> Iterator[str]:
    for folder, pattern in SOURCES.items():
        for file in sorted((root / folder).rglob(pattern)):
            lines = len(file.read_text().splitlines())
            if lines > MAX_LINES:
                yield f"{file.relative_to(root)}: {lines} lines"


def test_no_source_file_is_longer_than_400_lines() -> None:
    assert list(too_long(ROOT)) == []


@pytest.mark.parametrize("file", ["workbench/long.py", "labextension/src/model/long.ts"])
def test_a_file_of_401_lines_is_named(tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("\n" * 401)
    assert list(too_long(tmp_path)) == [f"{file}: 401 lines"]
