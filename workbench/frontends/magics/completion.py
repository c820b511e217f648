"""Tab behind `%%gpu-schedule`: its options, and the values that an option may have."""

from __future__ import annotations

from typing import Any, Final

from workbench.frontends.magics.options import DEVICES, OPTIONS, PRIORITIES, SPLITS

_VALUES: Final = {"--priority": PRIORITIES, "--device": DEVICES, "--split": SPLITS}
_MAGICS: Final = ("%%gpu-schedule", "%gpu-schedule", "%%gpu-plan", "%%gpu-advise")


def complete(_shell: Any, event: Any) -> list[str]:
    """Return what may stand at the cursor. IPython filters by what is typed already.

    Args:
        event: IPython's: `line`, and `symbol`, the word at the cursor.
    """
    words = event.line.split()
    if event.symbol and words and words[-1] == event.symbol:
        words.pop()
    choices = _VALUES.get(words[-1]) if words else None
    candidates = choices or [option for option in OPTIONS if option not in words]
    return [one for one in candidates if one.startswith(event.symbol)]


def register(shell: Any) -> None:
    """Have Tab ask `complete` on the lines of the magics that take options."""
    for magic in _MAGICS:
        shell.set_hook("complete_command", complete, str_key=magic)
