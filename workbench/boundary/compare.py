"""Which sides of an object can change, by its type; and which of the kernel's objects did."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from workbench.boundary.attributes import (
    CELL,
    CLASS,
    OWN_DICT,
    SLOTS,
    definition_facets,
)
from workbench.boundary.containers import Facet, container_facets
from workbench.boundary.errors import Refused
from workbench.boundary.fingerprint import Fingerprints
from workbench.boundary.hidden_state import attributes_facet, hidden_facet
from workbench.boundary.inputs import Temporary
from workbench.boundary.kinds import core_type, has_hidden_state, is_plain, slot_names
from workbench.boundary.libraries import Scene, loaded_libraries
from workbench.boundary.parcel import Received

_NEVER_CHANGE: Final = frozenset(
    {
        Temporary,
        str,
        bytes,
        tuple,
        int,
        float,
        complex,
        frozenset,
        types.CodeType,
        types.ModuleType,
        types.BuiltinFunctionType,
        types.MethodType,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of an object that came from the kernel.

    Attributes:
        number: The object's number.
        value: The object.
        put: What makes the change there; None where nothing can.
        state: What it is given; why it cannot.
    """

    number: int
    value: Any
    put: Any
    state: Any


class Watch:
    """Remembers objects as they arrived.

    Args:
        objects: All that came, by number.
        own: How many of the first are this process's own.
        received: The files that they came in.
    """

    def __init__(self, objects: Sequence[Any], own: int, received: Received) -> None:
        self._libraries = loaded_libraries()
        fingerprints = Fingerprints({id(one): one for one in objects})
        self._scene = Scene(fingerprints=fingerprints, received=received)
        self._facets: dict[type, tuple[Facet, ...]] = dict.fromkeys(_NEVER_CHANGE, ())
        self._taken = [
            (number, facet, facet.take(objects[number]))
            for number in range(own, len(objects))
            for facet in self._of(objects[number])
        ]
        self._objects = objects

    def changes(self) -> Iterator[Change]:
        """Yields what is no longer as it arrived."""
        for number, facet, before in self._taken:
            value = self._objects[number]
            try:
                state = facet.difference(value, before)
            except Refused as refused:
                yield Change(number=number, value=value, put=None, state=refused)
            else:
                if state is not None:
                    yield Change(number=number, value=value, put=facet.put, state=state)

    def _of(self, value: Any) -> tuple[Facet, ...]:
        cls = type(value)
        facets = self._facets.get(cls)
        if facets is None:
            if issubclass(cls, type | types.FunctionType):
                return definition_facets(value)
            facets = self._facets[cls] = self._choose(cls)
        return facets

    def _choose(self, cls: type) -> tuple[Facet, ...]:
        for library in self._libraries:
            if (facets := library.facets_for(cls, self._scene)) is not None:
                return facets
        return _facets(cls, self._scene.fingerprints)


def _facets(cls: type, fingerprints: Fingerprints) -> tuple[Facet, ...]:
    if cls is types.CellType:
        return (CELL,)
    facets = list(container_facets(cls))
    if cls.__dictoffset__:
        facets.append(OWN_DICT if is_plain(cls) else attributes_facet(fingerprints))
    if slot_names(cls):
        facets.append(SLOTS)
    if facets and core_type(cls) is object:
        facets.append(CLASS)
    if has_hidden_state(cls):
        facets.append(hidden_facet(fingerprints))
    return tuple(facets)
