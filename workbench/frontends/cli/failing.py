"""The one mapping from errors to exit codes, and how an error is shown."""

from __future__ import annotations

import json
import sys
from typing import Final

from workbench.client import PeerError, UserError, WorkbenchError
from workbench.protocol.text import visible

REFUSED: Final = 1
UNREACHABLE: Final = 3
BUG: Final = 4


def exit_code(error: WorkbenchError) -> int:
    """Return the code for an error; `workbench --help` lists them."""
    if isinstance(error, UserError):
        return REFUSED
    return UNREACHABLE if isinstance(error, PeerError) else BUG


def report(error: WorkbenchError, *, as_json: bool) -> None:
    """Show an error: a sentence on stderr, or an object on stdout."""
    if as_json:
        kind = type(error).__name__
        print(
            json.dumps(
                {"error": kind, "message": error.message, "next_step": error.next_step}, indent=2
            )
        )
    else:
        lines = [visible(line) for line in f"workbench: {error}".splitlines()]
        print("\n".join(lines), file=sys.stderr)
