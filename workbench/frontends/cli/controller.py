"""`workbench controller …`: become the controller, for a service unit or a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn


def become(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by `python -m workbench.controller` with these arguments."""
    os.execv(sys.executable, [sys.executable, "-m", "workbench.controller", *arguments])  # noqa: S606 -- no shell is wanted
