"""Has `%%gpu-schedule --help` work in a cell of its own: IPython refuses an empty body."""

from __future__ import annotations

import re
from typing import Any, Final

_CALL: Final = re.compile(
    r"get_ipython\(\)\.run_cell_magic\('gpu-schedule', '\s*(--help|-h)\s*', ''\)\s*"
)
"""What IPython makes of such a cell before it runs it."""


def as_line_magic(lines: list[str]) -> list[str]:
    """Return the call of the line magic where a cell asks for nothing but help."""
    if len(lines) == 1 and _CALL.fullmatch(lines[0]):
        return ["get_ipython().run_line_magic('gpu-schedule', '--help')\n"]
    return lines


def register(shell: Any) -> None:
    """Look at each cell; a second time changes nothing."""
    if as_line_magic not in shell.input_transformers_post:
        shell.input_transformers_post.append(as_line_magic)
