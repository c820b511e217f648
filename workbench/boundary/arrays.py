"""numpy arrays: how they cross, share memory, and are changed in place.

Loaded only where numpy is. The items of an array travel beside the pickle stream as they lie in
memory. An array that shares memory with another is made a view: of that one, of bytes that both
lie in, or of an array that the other side has already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from workbench.boundary.array_changes import array_facets
from workbench.boundary.containers import Facet
from workbench.boundary.errors import Refused
from workbench.boundary.hidden_state import attributes_facet
from workbench.boundary.libraries import Run, Scene
from workbench.boundary.sharing import (
    Array,
    Memory,
    address,
    as_buffer,
    as_bytes,
    extent,
    flat,
    has_plain_items,
    is_contiguous,
    order_of,
    owner,
    strided,
)

MAPPED_FROM_BYTES: Final = 1 << 16
"""Larger arrays of a home lie in the mapped file itself; smaller ones are copied out of it."""
_GAPS_KEPT_BYTES: Final = 1 << 12
_GAPS_KEPT_ITEMS: Final = 1 << 9


def reducer_for(cls: type, run: Run) -> Callable[[Any], Any] | None:
    """Returns what reduces arrays of a type; None for what is not an array.

    Args:
        cls: The type.
        run: The pass of pickling.
    """
    if cls is type(np.random.mtrand._rand):  # noqa: SLF001  (`from numpy.random import rand` is bound to it)
        return _reduce_random_state
    if issubclass(cls, np.void) and run.outbound:
        return _refuse_record
    if not issubclass(cls, np.ndarray) or cls.__reduce__ is not np.ndarray.__reduce__:
        return None
    if issubclass(cls, np.memmap):
        return _refuse_memmap
    memory = run.memory
    assert memory is not None, "a run has one where numpy is loaded"
    return lambda value: _with_attributes(value, _reduce(value, memory))


def _reduce(value: Array, memory: Memory) -> Any:
    if value.dtype == object:
        return _reduce_objects(value, memory)
    if not has_plain_items(value.dtype):
        return NotImplemented
    if value.size == 0:
        return make_empty, ("C", *_kind(value))
    if 0 in value.strides:
        compact = memory.stand_in(value, "compact", lambda: _compact(value))
        return make_view, (compact, 0, value.strides, *_kind(value))
    if is_contiguous(value) or _is_sparse(value):
        root = memory.meet(value)
    else:  # Its gaps cross with it, so that its layout stays.
        span = extent(value)
        root = memory.block(value, span.start, span.stop)
    if root is not None:
        return make_view, (root, address(value) - _address(root), value.strides, *_kind(value))
    if not is_contiguous(value):
        memory.loose[id(value)] = value
    return make_array, (as_buffer(value), order_of(value), *_kind(value))


def _with_attributes(value: Array, reduced: Any) -> Any:
    own = getattr(value, "__dict__", None)
    if not own or reduced is NotImplemented or len(reduced) > len(("make", "args")):
        return reduced
    return *reduced, own, None, None, set_attributes


def _reduce_random_state(value: Any) -> Any:
    """Reduces numpy's global generator by name; its state travels with the process's."""
    is_global = value is np.random.mtrand._rand  # noqa: SLF001
    return (getattr, (np.random.mtrand, "_rand")) if is_global else NotImplemented


def _refuse_record(value: Any) -> Any:
    if value.dtype.names is None:
        return NotImplemented
    raise Refused(
        "is one record of an array, which a copy would not change",
        "Use a part of the array with one record, such as a[i:i + 1], or keep it.item()",
    )


def _refuse_memmap(_: Any) -> Any:
    raise Refused(
        "is a view of a file, which a copy would not change",
        "Open it in the cell that uses it, or pass on numpy.array(it)",
    )


def make_empty(
    order: Any,
    cls: type,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    writeable: bool,  # noqa: FBT001
) -> Any:
    """Returns an array of no items, or one whose items are not there yet."""
    return _finished(np.empty(shape, dtype, order), cls, writeable=writeable)


def make_array(
    buffer: Any,
    order: Any,
    cls: type,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    writeable: bool,  # noqa: FBT001
) -> Any:
    """Returns an array: over the buffer if that is large and can be written, else with a copy."""
    if len(buffer) >= MAPPED_FROM_BYTES and not buffer.readonly:
        plain = np.ndarray(shape, dtype, buffer, order=order)
    else:
        plain = np.empty(shape, dtype, order)
        as_bytes(plain)[:] = np.frombuffer(buffer, np.uint8)
    return _finished(plain, cls, writeable=writeable)


def make_view(
    root: Any,
    offset: int,
    strides: tuple[int, ...],
    cls: type,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    writeable: bool,  # noqa: FBT001
) -> Any:
    """Returns an array over another one's memory, or a bytearray's."""
    if dtype.kind != "O" and not (isinstance(root, np.ndarray) and not root.flags.carray):
        plain: Array = np.ndarray(shape, dtype, _buffer(root), offset, strides)
    else:
        plain = strided(root, _address(root) + offset, shape, strides, dtype)
    return _finished(plain, cls, writeable=writeable)


def set_attributes(value: Array, own: dict[str, Any]) -> None:
    """Gives an array of a subclass its attributes."""
    value.__dict__.update(own)


def set_objects(value: Array, state: tuple[list[Any], bool, dict[str, Any] | None]) -> None:
    """Fills an array of objects."""
    items, writeable, own = state
    row = flat(value)
    for index, item in enumerate(items):
        row[index] = item
    value.flags.writeable = writeable
    if own is not None:
        value.__dict__.update(own)


def _reduce_objects(value: Array, memory: Memory) -> Any:
    root = memory.meet(value)
    if root is None and value.size and not is_contiguous(value):
        root = owner(value)
        if not isinstance(root, np.ndarray) or root.size > 2 * value.size + _GAPS_KEPT_ITEMS:
            memory.loose[id(value)] = value
            root = None
    if root is not None:
        return make_view, (root, address(value) - _address(root), value.strides, *_kind(value))
    cls, shape, dtype, writeable = _kind(value)
    state = (list(flat(value)), writeable, getattr(value, "__dict__", None))
    return make_empty, (order_of(value), cls, shape, dtype, True), state, None, None, set_objects


def _kind(value: Array) -> tuple[type, tuple[int, ...], np.dtype[Any], bool]:
    return type(value), value.shape, value.dtype, value.flags.writeable


def _finished(plain: Array, cls: type, *, writeable: bool) -> Array:
    value = plain if cls is np.ndarray else plain.view(cls)
    if not writeable:
        value.flags.writeable = False
    return value


def _is_sparse(value: Array) -> bool:
    """Returns whether an array's gaps are larger than its items: they do not cross."""
    span = extent(value)
    return span.stop - span.start > 2 * value.nbytes + _GAPS_KEPT_BYTES


def _compact(value: Array) -> Array:
    """Returns one of each item of an array that repeats its items."""
    return value[*(slice(None) if stride else 0 for stride in value.strides), ...]


def _address(root: Any) -> int:
    return address(root if isinstance(root, np.ndarray) else np.frombuffer(root, np.uint8))


def _buffer(root: Any) -> Any:
    """Returns what `np.ndarray` takes as memory; dates have no buffer of their own."""
    is_date = isinstance(root, np.ndarray) and root.dtype.kind in "mM"
    return root.view(np.uint8) if is_date else root


def facets_for(cls: type, scene: Scene) -> tuple[Facet, ...] | None:
    """Returns what can change in arrays of a type; None for what is not an array."""
    if not issubclass(cls, np.ndarray) or cls.__reduce__ is not np.ndarray.__reduce__:
        return None
    facets = array_facets(scene)
    return (*facets, attributes_facet(scene.fingerprints)) if cls.__dictoffset__ else facets
