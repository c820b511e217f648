"""The standard library as it was before the cell, for what is left to do after it.

A cell may patch anything (`json.dumps = …`, `os.write = None`); in its own process that is its own
affair. What brings its result home must not depend on it. Classes that were patched stay so.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, Final

_MODULES: Final = (
    "ast", "asyncio", "atexit", "base64", "builtins", "codecs", "collections", "contextlib",
    "copyreg", "fcntl", "functools", "gc", "importlib", "inspect", "io", "json", "json.decoder",
    "json.encoder", "linecache", "logging", "mmap", "os", "pathlib", "pickle", "posix",
    "posixpath", "random", "re", "signal", "stat", "struct", "threading", "time", "tokenize",
    "traceback", "types", "weakref",
)  # fmt: skip
_THE_CELLS_OWN: Final = frozenset(
    {("os", "environ"), ("linecache", "cache"), ("threading", "excepthook")}
)
_ABSENT: Final = object()


class OwnLibrary:
    """Make it before the cell begins."""

    def __init__(self) -> None:
        self._modules = {name: sys.modules[name] for name in _MODULES if name in sys.modules}
        self._were = {name: dict(vars(module)) for name, module in self._modules.items()}

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Have everything as it was meanwhile; what the cell made of it holds again afterwards."""
        theirs: list[tuple[dict[str, Any], str, Any]] = []
        for module, before in self._were.items():
            now = vars(self._modules[module])
            for name, value in before.items():
                found = now.get(name, _ABSENT)
                if found is not value and (module, name) not in _THE_CELLS_OWN:
                    theirs.append((now, name, found))
                    now[name] = value
        try:
            yield
        finally:
            for now, name, value in theirs:
                if value is _ABSENT:
                    del now[name]
                else:
                    now[name] = value
