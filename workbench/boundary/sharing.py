"""Which arrays share memory, so that they still do on the other side.

Loaded only where numpy is.
"""

from __future__ import annotations

import array
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

Array = np.ndarray[Any, Any]

_OWNERS: Final = (bytearray, array.array)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The memory that an array spans, gaps included.

    Attributes:
        array: The array.
        start: The first byte's address.
        stop: The address after the last byte.
    """

    array: Array
    start: int
    stop: int

    def holds(self, other: Extent) -> bool:
        """Returns whether all of another array's memory is in this one's."""
        return self.start <= other.start and other.stop <= self.stop


@dataclass(frozen=True, slots=True)
class _Raw:
    """Memory by its address, as numpy's array interface wants it."""

    __array_interface__: dict[str, Any]
    base: Any  # Keeps the memory alive; numpy's own name for it.


@dataclass(slots=True, kw_only=True)
class Memory:
    """The arrays that one pass of pickling met, and what was planned for the next.

    Attributes:
        loose: By id, arrays that the other side has in another layout, so that no view of one can
            be made there.
        parted: Arrays that shared memory with a loose one, and no longer will.
        attached: By id, arrays within a pandas object that others are views of.
    """

    loose: dict[int, Array] = field(default_factory=dict)
    parted: list[Array] = field(default_factory=list)
    attached: dict[int, Array] = field(default_factory=dict)
    _exposed: dict[int, Extent] = field(default_factory=dict)
    _met: dict[int, Extent] = field(default_factory=dict)
    _roots: dict[int, Any] = field(default_factory=dict)
    _stand_ins: dict[tuple[int, str], tuple[Any, Array]] = field(default_factory=dict)

    def meet(self, value: Array) -> Any:
        """Notes that an array crosses; returns the object it is to be a view of, or None."""
        if value.nbytes:
            self._met[id(value)] = extent(value)
        return self._roots.get(id(value))

    def expose(self, value: Array) -> None:
        """Notes an array that a pandas object alone holds, and changes in place."""
        if value.nbytes:
            self._exposed[id(value)] = extent(value)

    def stand_in(self, value: Any, kind: str, make: Callable[[], Array]) -> Array:
        """Returns an array made of a value: for each kind the same object at every pass."""
        entry = self._stand_ins.get((id(value), kind))
        if entry is None:
            # The value is kept too, so that its id stays its own.
            entry = self._stand_ins[id(value), kind] = (value, make())
        return entry[1]

    def block(self, value: Array, start: int, stop: int) -> Array:
        """Returns the memory between two addresses within what `value` is a view of, as bytes."""
        return self.stand_in(owner(value), f"{start}-{stop}", lambda: raw(value, start, stop))

    def plan(self, written: Iterable[Any], known: Iterable[Any]) -> bool:
        """Finds the arrays that overlap and gives each group one root.

        Args:
            written: All that has been pickled: the arrays of a bytearray among it are its views.
            known: What the reader has already.

        Returns:
            Whether any array becomes a view, so that all has to be pickled anew.
        """
        owners = {id(one): one for one in written if issubclass(type(one), _OWNERS)}
        there = {id(one): extent(one) for one in known if _has_memory(one)}
        there = {number: one for number, one in there.items() if number not in self._met}
        exposed = [one for number, one in self._exposed.items() if number not in there]
        for group in _overlapping([*there.values(), *self._met.values(), *exposed]):
            members = [one for one in group if id(one.array) in self._met]
            if members:
                holders = [one for one in group if id(one.array) in there]
                shown = [one for one in group if id(one.array) in self._exposed]
                self._plan_group(members, holders, shown, owners)
        return bool(self._roots)

    def _plan_group(
        self,
        members: list[Extent],
        holders: Sequence[Extent],
        shown: Sequence[Extent],
        owners: Mapping[int, Any],
    ) -> None:
        if len(shown) == 1:  # Where several pandas objects share memory, a write parts them first.
            members.append(shown[0])
            self.attached[id(shown[0].array)] = shown[0].array
        if (root := owners.get(id(owner(members[0].array)))) is not None:
            self._roots.update((id(one.array), root) for one in members)
        elif holders:
            self._attach(members, holders)
        elif len(members) > 1:
            root = self._new_root(members)
            self._roots.update((id(one.array), root) for one in members)
            self._roots.pop(id(root), None)

    def _attach(self, members: Iterable[Extent], there: Sequence[Extent]) -> None:
        """Makes new arrays views of ones that the reader has already."""
        for member in members:
            holders = [one for one in there if one.holds(member)]
            firm = [one for one in holders if id(one.array) not in self.loose]
            if firm:
                self._roots[id(member.array)] = firm[0].array
            else:
                self.parted.append(member.array)

    def _new_root(self, members: Sequence[Extent]) -> Any:
        whole = Extent(
            array=members[0].array,
            start=min(one.start for one in members),
            stop=max(one.stop for one in members),
        )
        for one in members:
            if one.holds(whole) and _can_be_root(one.array):
                return one.array
        if whole.array.dtype.hasobject:
            return owner(whole.array)
        return self.block(whole.array, whole.start, whole.stop)


def extent(value: Array) -> Extent:
    """Returns the memory that an array spans."""
    start, stop = address(value), address(value)
    for length, stride in zip(value.shape, value.strides, strict=True):
        reach = (length - 1) * stride
        start, stop = start + min(reach, 0), stop + max(reach, 0)
    return Extent(array=value, start=start, stop=stop + value.itemsize)


def address(value: Array) -> int:
    """Returns where an array's first item is."""
    where: int = value.__array_interface__["data"][0]
    return where


def owner(value: Any) -> Any:
    """Returns the object whose memory an array is a view of; the array where it is its own."""
    while True:
        base = value.obj if isinstance(value, memoryview) else getattr(value, "base", None)
        if base is None:
            return value
        value = base


def raw(base: Any, start: int, stop: int) -> Array:
    """Returns memory as bytes that can be written, whoever it belongs to.

    Args:
        base: What keeps the memory alive.
        start: The first byte's address.
        stop: The address after the last byte.
    """
    return strided(base, start, (stop - start,), None, np.dtype(np.uint8))


def strided(
    base: Any,
    start: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    dtype: np.dtype[Any],
) -> Array:
    """Returns an array over memory that `base` keeps alive."""
    code = "|O" if dtype.kind == "O" else f"|V{dtype.itemsize}"
    interface = {
        "data": (start, False),
        "shape": shape,
        "strides": strides,
        "typestr": code,
        "version": 3,
    }
    made = np.asarray(_Raw(interface, base))
    return made if dtype.kind == "O" else made.view(dtype)


def has_plain_items(dtype: np.dtype[Any]) -> bool:
    """Returns whether items are the bytes that lie in the array, and those are all."""
    return not dtype.hasobject and dtype.kind != "T" and dtype.itemsize > 0


def is_contiguous(value: Array) -> bool:
    """Returns whether the items lie in memory without gaps, in C or Fortran order."""
    return value.flags.c_contiguous or value.flags.f_contiguous


def order_of(value: Array) -> Literal["C", "F"]:
    """Returns the order in which the items lie in memory; C where there are gaps."""
    return "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"


def flat(value: Array) -> Array:
    """Returns the items in one row: as they lie in memory, or copied in C order if with gaps."""
    plain = np.asarray(value)
    return np.ascontiguousarray(plain.T if order_of(value) == "F" else plain).reshape(-1)


def as_bytes(value: Array) -> Array:
    """Returns the bytes of `flat`."""
    return flat(value).view(np.uint8)


def as_buffer(value: Array) -> pickle.PickleBuffer:
    """Returns `as_bytes` for the pickler to leave out of the stream."""
    items: Any = as_bytes(value)
    return pickle.PickleBuffer(items)


def _has_memory(value: Any) -> bool:
    return issubclass(type(value), np.ndarray) and value.nbytes > 0


def _can_be_root(value: Array) -> bool:
    owns = value.base is None or isinstance(value.base, _Raw)
    return type(value) is np.ndarray and owns and value.flags.c_contiguous and value.flags.writeable


def _overlapping(extents: Iterable[Extent]) -> Iterator[list[Extent]]:
    """Yields groups of arrays that are connected by memory in common."""
    group: list[Extent] = []
    end = 0
    for one in sorted(extents, key=lambda one: one.start):
        if group and one.start >= end:
            yield group
            group = []
        end = max(end, one.stop) if group else one.stop
        group.append(one)
    if group:
        yield group
