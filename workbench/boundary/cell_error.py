"""What a cell raised, with its traceback as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CellError:
    """What a cell raised.

    Attributes:
        exception: The exception; a `RemoteError` where it could not itself cross.
        traceback_lines: The traceback as the home rendered it; IPython shows it as it is.
    """

    exception: BaseException
    traceback_lines: Sequence[str] = ()

    def as_exception(self) -> BaseException:
        """Returns the exception, which IPython will show with the home's own traceback."""
        if self.traceback_lines:
            lines = list(self.traceback_lines)
            # Not its class's own way, which may refuse.
            object.__setattr__(self.exception, "_render_traceback_", lambda: lines)
        return self.exception


def describe(error: BaseException) -> str:
    """Returns an exception's type and text; its type alone where its text cannot be made."""
    cls = type(error)
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  (the user's own __str__)
        return cls.__qualname__
    return f"{cls.__qualname__}: {text}" if text else cls.__qualname__
