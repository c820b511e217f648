"""pandas objects: each crosses as a unit. Loaded only where pandas is.

What pandas keeps inside (managers, blocks, arrays) is pickled apart and never numbered, so that a
changed frame comes back whole and takes the place of what was in the frame here. What others can
hold as well (an index, objects in cells) is outside the unit and crosses for itself.
"""

from __future__ import annotations

import io
import operator
import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from pandas.api.extensions import (  # type: ignore[import-untyped]
    ExtensionArray,
    ExtensionDtype,
)

from workbench.boundary.array_changes import MappedBytes, same_bytes
from workbench.boundary.containers import Facet
from workbench.boundary.kinds import core_type, has_own_hash, is_importable
from workbench.boundary.libraries import Run, Scene
from workbench.boundary.sharing import Memory

_ATOMS: Final = frozenset({type(None), bool, int, float, complex, str, bytes, tuple, slice})
_INTERNAL: Final = ("pandas.core.internals", "pandas._libs")
_CACHE: Final = "_cache"

_Unit = tuple[bytes, tuple[Any, ...], tuple[Any, ...]]
"""What was pickled apart, the objects outside that it refers to, and its buffers."""


def reducer_for(cls: type, run: Run) -> Callable[[Any], Any] | None:
    """Returns what reduces pandas objects of a type; None for what is not one.

    Args:
        cls: The type.
        run: The pass of pickling.
    """
    memory = run.memory
    assert memory is not None, "pandas is loaded with numpy"
    if issubclass(cls, pd.DataFrame | pd.Series):
        return lambda value: _reduce_frame(value, memory)
    if issubclass(cls, pd.Index | ExtensionArray):
        return lambda value: (make_from_unit, _pack_unit(value, memory))
    return None


def facets_for(cls: type, scene: Scene) -> tuple[Facet, ...] | None:
    """Returns what can change in pandas objects of a type; None for what is not one."""
    if issubclass(cls, pd.Index):
        return (Facet(take=_names, difference=_names_difference, put=put_names),)
    if issubclass(cls, pd.DataFrame | pd.Series):
        return (_unit_facet(scene, _frame_state, put_frame),)
    if issubclass(cls, ExtensionArray):
        return (_unit_facet(scene, lambda value: (value, {}), put_array),)
    return None


def make_frame(cls: Any) -> Any:
    """Returns a frame or series with nothing in it."""
    return cls.__new__(cls)


def put_frame(value: Any, state: tuple[_Unit, dict[str, Any]]) -> None:
    """Gives a frame or series its content."""
    unit, rest = state
    value.__setstate__({"_mgr": make_from_unit(*unit), **rest})


def put_array(value: Any, state: tuple[_Unit, dict[str, Any]]) -> None:
    """Gives an extension array the content of another."""
    unit, _ = state
    value[:] = make_from_unit(*unit)


def make_from_unit(body: bytes, outside: Sequence[Any], buffers: Iterable[Any]) -> Any:
    """Returns what was pickled as a unit."""
    # What the kernel reads lies in a file that goes; what a home reads is its own to change.
    own = [bytearray(buffer) if buffer.readonly else buffer for buffer in buffers]
    unpickler = _UnitUnpickler(io.BytesIO(body), buffers=own)
    unpickler.outside = outside
    return unpickler.load()


def make_objects(shape: tuple[int, ...], items: Sequence[Any]) -> Any:
    """Returns an array of objects."""
    flat = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        flat[index] = item
    return flat.reshape(shape)


def make_internal(function: Callable[..., Any], args: Any, state: Any) -> Any:
    """Returns an internal of pandas."""
    value = function(*_decode(args))
    decoded = _decode(state)
    if decoded is not None and hasattr(value, "__setstate__"):
        value.__setstate__(decoded)
    elif decoded is not None:
        value.__dict__.update(decoded)
    return value


def put_names(value: Any, state: tuple[list[Any]]) -> None:
    """Gives an index its names."""
    (value.names,) = state


def _names(value: Any) -> list[Any]:
    return list(value.names)


def _names_difference(value: Any, before: list[Any]) -> tuple[list[Any]] | None:
    now = _names(value)
    return None if all(map(lambda a, b: a is b, now, before)) else (now,)


def _frame_state(value: Any) -> tuple[Any, dict[str, Any]]:
    rest = dict(value.__getstate__())
    return rest.pop("_mgr"), rest


def _reduce_frame(value: Any, memory: Memory) -> Any:
    manager, rest = _frame_state(value)
    for block in manager.blocks:
        if isinstance(block.values, np.ndarray) and not block.refs.has_reference():
            memory.expose(block.values)
    state = (_pack_unit(manager, memory), rest)
    return make_frame, (type(value),), state, None, None, put_frame


def _pack_unit(value: Any, memory: Memory | None) -> _Unit:
    file = io.BytesIO()
    pickler = _UnitPickler(file, value, memory)
    pickler.dump(value)
    return file.getvalue(), tuple(pickler.outside), tuple(pickler.buffers)


def _unit_facet(
    scene: Scene,
    parts: Callable[[Any], tuple[Any, dict[str, Any]]],
    put: Callable[[Any, Any], None],
) -> Facet:
    """Returns the facet of a unit: what it holds, and what goes with it."""
    mapped = MappedBytes(scene.received)

    def take(value: Any) -> Any:
        content, rest = parts(value)
        body, outside, buffers = _pack_unit(content, None)
        kept = [mapped.keep(one.raw()) for one in buffers]
        return body, outside, kept, scene.fingerprints.of(rest)

    def difference(value: Any, before: Any) -> Any:
        body_before, outside_before, kept, rest_before = before
        content, rest = parts(value)
        body, outside, buffers = _pack_unit(content, None)
        if (
            body == body_before
            and all(map(operator.is_, outside, outside_before))
            and all(same_bytes(one.raw(), was) for one, was in zip(buffers, kept, strict=True))
            and scene.fingerprints.of(rest) == rest_before
        ):
            return None
        return (body, outside, buffers), rest

    return Facet(take=take, difference=difference, put=put)


class _UnitPickler(pickle.Pickler):
    """Pickles pandas' own objects, and refers to all others."""

    def __init__(self, file: io.BytesIO, root: Any, memory: Memory | None) -> None:
        self.outside: list[Any] = []
        self.buffers: list[pickle.PickleBuffer] = []
        self._places: dict[int, int] = {}
        self._root = root
        self._attached = memory.attached if memory is not None else {}
        super().__init__(file, pickle.HIGHEST_PROTOCOL, buffer_callback=self.buffers.append)

    def persistent_id(self, value: Any) -> int | None:
        if type(value) in _ATOMS or value is self._root or self._is_inside(value):
            return None
        place = self._places.get(id(value))
        if place is None:
            place = self._places[id(value)] = len(self.outside)
            self.outside.append(value)
        return place

    def reducer_override(self, value: Any) -> Any:
        if type(value) is np.ndarray:
            if value.dtype != object:
                return NotImplemented
            return make_objects, (value.shape, tuple(value.reshape(-1)))
        own = isinstance(value, pd.Index | ExtensionArray | ExtensionDtype)
        if not own and not _is_internal(type(value)):
            return NotImplemented
        reduced = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if isinstance(reduced, str):
            return reduced
        function, args, *state = reduced
        return make_internal, (function, _encode(args), _encode(state[0] if state else None))

    def _is_inside(self, value: Any) -> bool:
        cls: Any = type(value)
        if cls is np.ndarray:
            return id(value) not in self._attached
        if isinstance(value, ExtensionArray | ExtensionDtype | pickle.PickleBuffer):
            return True
        if isinstance(value, pd.Index):
            return False
        if hasattr(value, "__qualname__"):
            return is_importable(value)
        return _is_internal(cls) or (has_own_hash(cls) and core_type(cls) is not object)


class _UnitUnpickler(pickle.Unpickler):
    outside: Sequence[Any]

    def persistent_load(self, pid: Any) -> Any:
        return self.outside[pid]


def _is_internal(cls: type) -> bool:
    return cls.__module__.startswith(_INTERNAL)


def _encode(value: Any) -> Any:
    """Spells lists and dicts out, for as such they would be taken for a user's."""
    if type(value) in (list, tuple):
        return type(value).__name__, tuple(map(_encode, value))
    if type(value) is dict:
        return "dict", tuple((key, _encode(one)) for key, one in value.items() if key != _CACHE)
    return "one", value


def _decode(encoded: Any) -> Any:
    kind, value = encoded
    if kind == "list":
        return list(map(_decode, value))
    if kind == "tuple":
        return tuple(map(_decode, value))
    if kind == "dict":
        return {key: _decode(one) for key, one in value}
    return value
