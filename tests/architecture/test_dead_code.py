"""No function, class or method lies about that nothing calls.

`vulture` in `make check` reports only what is certain: below that its command line cannot tell a
function that nobody calls from a field that only goes over the wire. This test can.
"""

import tomllib
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["vulture"]
KINDS = {"function", "class", "method", "property", "import"}


def unused(*paths: Path) -> list[str]:
    finder = Vulture(
        ignore_names=SETTINGS["ignore_names"], ignore_decorators=SETTINGS["ignore_decorators"]
    )
    finder.scavenge(paths)
    return [
        f"{item.filename.name}:{item.first_lineno} {item.typ} {item.name}"
        for item in finder.get_unused_code()
        if item.typ in KINDS
    ]


def test_nothing_is_defined_that_nobody_uses() -> None:
    assert unused(*(ROOT / path for path in SETTINGS["paths"])) == []


def test_a_function_that_nobody_calls_is_named(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("def used(): ...\ndef forgotten(): ...\nused()\n")
    assert unused(file) == ["module.py:2 function forgotten"]
