"""The controller's log: one bounded file, 0600. Never code, tokens or environment."""

from __future__ import annotations

import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

LOG: Final = logging.getLogger("workbench.controller")
_ALL: Final = logging.getLogger("workbench")
_LIMIT_BYTES: Final = 2**20


def open_log(path: Path) -> None:
    """Write what every part of Workbench logs to `path`, mode 0600.

    At 1 MiB the file is set aside and the one set aside before is dropped.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    handler = RotatingFileHandler(path, maxBytes=_LIMIT_BYTES, backupCount=1, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.raiseExceptions = False  # A full disk must not print a traceback for every line.
    _ALL.addHandler(handler)
    _ALL.setLevel(logging.INFO)
    _ALL.propagate = False
