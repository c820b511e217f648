"""Text that UTF-8 or a terminal cannot take as it is. Standard library only.

Names of files and variables are bytes; Python shows a byte that is no UTF-8 as a lone surrogate
(PEP 383), which no message can carry.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_ESCAPED: Final = "\0"
"""Begins a text that `carried` has changed: no name, value or path of the system has a NUL."""
_NOT_SHOWN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of what steers a terminal or turns the direction of what follows."""


def carried(text: str) -> str:
    """Return a name, value or path so that a message can carry it; `restored` undoes it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _ESCAPED + text.encode("utf-8", "surrogatepass").decode("latin-1")
    return text


def restored(text: str) -> str:
    """Return what `carried` was given."""
    if not text.startswith(_ESCAPED):
        return text
    return text.removeprefix(_ESCAPED).encode("latin-1").decode("utf-8", "surrogatepass")


def plain(text: str) -> str:
    """Return text for people with every lone surrogate spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def visible(text: str) -> str:
    """Return text as one line in which nothing steers the terminal that shows it."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        repr(one)[1:-1].replace("\\\\", "\\") if unicodedata.category(one) in _NOT_SHOWN else one
        for one in text
    )
