"""Has IPython show an exception group with the traceback that its job rendered.

IPython leaves every group, and whatever was raised while one was handled, to Python's own printing,
which would show the frames of the magics instead of the cell's.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from workbench.advice.looks import attributes, is_a

_context_of = BaseException.__dict__["__context__"].__get__


def show_as_rendered(shell: Any, error: BaseException) -> None:
    """Prepare the shell for `error`, which is about to be raised; nothing for other kinds.

    Args:
        shell: The kernel's shell.
        error: What a job raised; `_render_traceback_` returns its lines.
    """
    if not _holds_group(error) or "_render_traceback_" not in attributes(error):
        return
    before = shell.custom_exceptions, shell.CustomTB

    def show(
        shell: Any,
        kind: type[BaseException],
        value: BaseException,
        traceback: TracebackType,
        tb_offset: int | None = None,
    ) -> None:
        shell.custom_exceptions, shell.CustomTB = before
        if value is error:
            shell._showtraceback(kind, value, value._render_traceback_())  # type: ignore[attr-defined]  # noqa: SLF001  (IPython has no public name for it)
        elif is_a(value, *before[0]):
            shell.CustomTB(kind, value, traceback, tb_offset)
        else:
            shell.showtraceback((kind, value, traceback))

    shell.set_custom_exc((type(error), *before[0]), show)


def _holds_group(error: BaseException | None) -> bool:
    while error is not None:
        if is_a(error, BaseExceptionGroup):
            return True
        error = _context_of(error)
    return False
