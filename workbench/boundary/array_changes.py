"""What changed in a numpy array, and how it is written back. Loaded only where numpy is."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from workbench.boundary.containers import Facet
from workbench.boundary.libraries import Scene
from workbench.boundary.parcel import Received
from workbench.boundary.sharing import (
    Array,
    address,
    as_buffer,
    as_bytes,
    flat,
    has_plain_items,
    is_contiguous,
)

_CHUNK_BYTES: Final = 1 << 20

_Layout = tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any]]


def array_facets(scene: Scene) -> tuple[Facet, ...]:
    """Returns what can change in an array: its layout, its items, whether they can be written.

    Args:
        scene: What arrived. Items are compared with the file that they came in, if they lie in it.
    """
    mapped = MappedBytes(scene.received)

    def take_items(value: Array) -> Any:
        if _is_view(value, scene):
            return None  # Whoever owns the memory is compared.
        if not has_plain_items(value.dtype):
            return list(flat(value))
        return mapped.keep(as_bytes(value))

    return (
        Facet(take=_layout, difference=_layout_difference, put=put_layout),
        Facet(take=take_items, difference=_items_difference, put=put_items),
        Facet(take=_protection, difference=_protection_difference, put=put_protection),
    )


def _is_view(value: Array, scene: Scene) -> bool:
    base: Any = value.base
    while base is not None:
        if id(base) in scene.fingerprints.by_id:
            return True
        base = getattr(base, "base", None)
    return False


def _layout(value: Array) -> _Layout:
    return value.shape, value.strides, value.dtype


def _layout_difference(value: Array, before: _Layout) -> _Layout | None:
    now = _layout(value)
    return None if now == before else now


def put_layout(value: Array, state: _Layout) -> None:
    """Makes an array's shape and type of items what they became."""
    shape, _, dtype = state
    if value.dtype != dtype:
        value.dtype = dtype  # type: ignore[misc]
    if value.shape != shape:
        value.resize(shape, refcheck=False)


def _protection(value: Array) -> tuple[bool]:
    return (value.flags.writeable,)


def _protection_difference(value: Array, before: tuple[bool]) -> tuple[bool] | None:
    now = _protection(value)
    return None if now == before else now


def put_protection(value: Array, state: tuple[bool]) -> None:
    """Makes an array one that can be written, or not."""
    (value.flags.writeable,) = state


def _items_difference(value: Array, before: Any) -> Any:
    if before is None:
        return None
    if not has_plain_items(value.dtype):
        now = list(flat(value))
        same = len(now) == len(before) and all(map(operator.is_, now, before))
        return None if same else (now,)
    parts = list(_changed_parts(as_bytes(value), before))
    return ([start for start, _ in parts], [buffer for _, buffer in parts]) if parts else None


def put_items(value: Array, state: tuple[Any, ...]) -> None:
    """Overwrites an array's items, wherever it keeps them."""
    was_writeable = value.flags.writeable
    if not was_writeable:
        value.flags.writeable = True
    row = flat(value)
    if has_plain_items(value.dtype):
        items = row.view(np.uint8)
        for start, buffer in zip(*state, strict=True):
            part = np.frombuffer(buffer, np.uint8)
            items[start : start + len(part)] = part
    else:
        (objects,) = state
        for index, item in enumerate(objects):
            row[index] = item
    if not is_contiguous(value):  # Then the row is a copy.
        np.copyto(np.asarray(value), row.reshape(value.shape))
    if not was_writeable:
        value.flags.writeable = False


def _changed_parts(now: Array, before: Any) -> Iterator[tuple[int, pickle.PickleBuffer]]:
    """Yields the chunks that changed and where they start; all in one where the length did."""
    was = np.frombuffer(before, np.uint8)
    if len(now) != len(was):
        yield 0, as_buffer(now)
        return
    for start in range(0, len(now), _CHUNK_BYTES):
        chunk = now[start : start + _CHUNK_BYTES]
        if chunk.tobytes() != was[start : start + _CHUNK_BYTES].tobytes():
            yield start, as_buffer(chunk)


class MappedBytes:
    """Remembers bytes: by their place in the file that they lie in, else by a copy.

    Args:
        received: The files that came.
    """

    def __init__(self, received: Received) -> None:
        self._received = received
        private = np.frombuffer(received.private, np.uint8)
        self._start = address(private)
        self._length = len(private)

    def keep(self, items: Any) -> Any:
        """Returns what `items` are now, whatever is written to them later."""
        view = np.frombuffer(items, np.uint8)
        at = address(view) - self._start
        if 0 <= at < self._length:
            return self._received.whole[at : at + len(view)]
        return view.tobytes()


def same_bytes(now: Any, before: Any) -> bool:
    """Returns whether memory holds the bytes that it did; no number is compared as a number."""
    return next(_changed_parts(np.frombuffer(now, np.uint8), before), None) is None
