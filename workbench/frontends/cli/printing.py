"""What commands print: JSON for programs, lines for people."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from workbench.protocol.text import visible


def print_json(value: object) -> None:
    """Print a wire struct, or plain data, as indented JSON."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; whatever could steer the terminal, such as another user's name, is escaped."""
    for line in lines:
        print(visible(line))
