"""The parts of the boundary that know a library's types: loaded where that library is."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from workbench.boundary.containers import Facet
from workbench.boundary.fingerprint import Fingerprints
from workbench.boundary.parcel import Received

if TYPE_CHECKING:
    from workbench.boundary.sharing import Memory

_PARTS: Final = {
    "pandas": "workbench.boundary.frames",
    "torch": "workbench.boundary.tensors",
    "numpy": "workbench.boundary.arrays",
}
"""Library → the module that knows its types; one that builds on another stands before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One pass of pickling.

    Attributes:
        outbound: Whether it goes to the home.
        memory: Which arrays share memory; None where numpy is not loaded.
        notes: What the user should be told, in order, as keys.
    """

    outbound: bool
    memory: Memory | None
    notes: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What arrived, for those who watch it.

    Attributes:
        fingerprints: Knows the objects that came.
        received: The files.
    """

    fingerprints: Fingerprints
    received: Received


class Library(Protocol):
    """A module that knows a library's types."""

    def reducer_for(self, cls: type, run: Run) -> Callable[[Any], Any] | None:
        """Returns what reduces the instances of a type; None where the type is not its own."""

    def facets_for(self, cls: type, scene: Scene) -> tuple[Facet, ...] | None:
        """Returns what can change in them; None where the type is not its own."""


def loaded_libraries() -> list[Library]:
    """Returns the parts whose library this process has loaded."""
    return [
        cast("Library", importlib.import_module(part))
        for library, part in _PARTS.items()
        if library in sys.modules
    ]


def new_memory() -> Memory | None:
    """Returns a memory for one answer; None where numpy is not loaded."""
    if "numpy" not in sys.modules:
        return None
    from workbench.boundary.sharing import Memory

    return Memory()
