"""What a statement prints and warns of while it runs early: recorded, then done in its turn."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """Text that went to a standard stream.

    Attributes:
        stream: `stdout` or `stderr`.
    """

    stream: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """A warning that was to be shown."""

    message: Warning | str
    category: type[Warning]
    filename: str
    lineno: int


Event = Printed | Warned


class _Stream(io.TextIOBase):
    def __init__(self, name: str, events: list[Event]) -> None:
        self._name = name
        self._events = events

    def writable(self) -> bool:
        """Whether it takes text."""
        return True

    def write(self, text: str) -> int:
        """Record `text`."""
        if text:
            self._events.append(Printed(stream=self._name, text=text))
        return len(text)


@contextlib.contextmanager
def recorded(events: list[Event]) -> Iterator[None]:
    """Record what is printed and warned of, in order, instead of showing it.

    The filters in force decide, as if nothing had been shown before: the home's own registries
    drop what was.
    """

    def note(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        *_: Any,
        **__: Any,
    ) -> None:
        events.append(Warned(message=message, category=category, filename=filename, lineno=lineno))

    with (
        contextlib.redirect_stdout(_Stream("stdout", events)),
        contextlib.redirect_stderr(_Stream("stderr", events)),
        warnings.catch_warnings(),
    ):
        warnings.showwarning = note
        yield


def replay(events: list[Event], namespace: dict[str, Any], filename: str) -> None:
    """Print and warn now, in order.

    Args:
        events: As recorded.
        namespace: The notebook's names; they hold the notebook's own registry of warnings.
        filename: The cell's.
    """
    for event in events:
        match event:
            case Printed(stream=stream, text=text):
                getattr(sys, stream).write(text)
            case Warned():
                module, registry = _place(event.filename, namespace, filename)
                warnings.warn_explicit(
                    event.message,
                    event.category,
                    event.filename,
                    event.lineno,
                    module=module,
                    registry=registry,
                )


def _place(
    origin: str, namespace: dict[str, Any], filename: str
) -> tuple[str | None, dict[Any, Any]]:
    """Return the module that warned and its registry of what was shown."""
    if origin == filename:
        return "__main__", namespace.setdefault("__warningregistry__", {})
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == origin:
            return name, vars(module).setdefault("__warningregistry__", {})
    return None, {}
