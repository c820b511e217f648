"""What is known of a value before anything runs: its kind, and the memory that it may share.

Memory is divided into regions. Two values that may share a mutable object, or memory, have a
region in common; whatever may come to be stored in one another is merged (as in Steensgaard's
points-to analysis). Knowledge about a region only grows, so that it holds for every order of
running.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final


class Kind(enum.Enum):
    """Kinds of values, each with known behaviour."""

    BOTTOM = "no value"
    INT = "an integer"  # bool too
    NUM = "a number"  # perhaps NaN, so perhaps not equal to itself
    STR = "a string"
    BYTES = "bytes"
    NONE = "None"
    SCALAR = "an immutable value"
    ARRAY = "an array"  # or a number
    FRAME = "a pandas object"  # DataFrame, Series, GroupBy, or a number
    LIST = "a list"
    DICT = "a dict"
    SET = "a set"
    TUPLE = "a tuple"
    RANGE = "a range"
    ITER = "an iterator"
    RNG = "a random generator"
    ESTIMATOR = "an estimator"
    RESULT = "a result object"
    HASH = "a hash object"
    MODULE = "a module"
    CALLABLE = "a library callable"
    CLOSURE = "a notebook function"
    METHOD = "a bound method"
    PLAIN = "plain data"  # any of the above that is data; all that it holds is in its region
    UNKNOWN = "a value of unknown type"


SCALARS: Final = frozenset(
    {Kind.INT, Kind.NUM, Kind.STR, Kind.BYTES, Kind.NONE, Kind.SCALAR, Kind.RANGE}
)
"""Immutable, and all that they hold too."""
NUMBERS: Final = frozenset({Kind.INT, Kind.NUM})
SELF_EQUAL: Final = frozenset({Kind.INT, Kind.STR, Kind.BYTES, Kind.NONE, Kind.BOTTOM})
"""Never NaN: equality does not depend on identity, which a copy does not keep."""
WITH_CONTENT: Final = frozenset({Kind.LIST, Kind.DICT, Kind.SET})
SHIPPABLE: Final = SCALARS | {
    Kind.ARRAY, Kind.FRAME, Kind.LIST, Kind.DICT, Kind.TUPLE, Kind.ESTIMATOR, Kind.RESULT,
    Kind.PLAIN,
    Kind.RNG,
}  # fmt: skip
"""A copy that went through a pickle behaves as the original. A set's order may not survive."""
_PLAIN: Final = SCALARS | {
    Kind.BOTTOM, Kind.ARRAY, Kind.FRAME, Kind.LIST, Kind.DICT, Kind.TUPLE, Kind.PLAIN,
}  # fmt: skip
_DEEPEST_TUPLE: Final = 4


@dataclass(frozen=True, slots=True)
class Value:
    """A value as far as it is known.

    Attributes:
        kind: How it behaves.
        region: The memory of its own that can change; None for what is immutable.
        items: A tuple's elements, where the length is known.
        elem: The join of a tuple's or iterator's elements, where it is not.
        ref: What a callable, module, function or estimator is.
    """

    kind: Kind
    region: int | None = None
    items: tuple[Value, ...] | None = None
    elem: Value | None = None
    ref: Any = None


BOTTOM: Final = Value(Kind.BOTTOM)
UNKNOWN: Final = Value(Kind.UNKNOWN)
INT: Final = Value(Kind.INT)
NUM: Final = Value(Kind.NUM)
STR: Final = Value(Kind.STR)
BYTES: Final = Value(Kind.BYTES)
NONE: Final = Value(Kind.NONE)
SCALAR: Final = Value(Kind.SCALAR)
RANGE: Final = Value(Kind.RANGE)


def tuple_of(*items: Value) -> Value:
    """Return a tuple of known length."""
    if max((_depth(one) for one in items), default=0) >= _DEEPEST_TUPLE:
        return UNKNOWN
    return Value(Kind.TUPLE, items=items)


def tuple_all(elem: Value) -> Value:
    """Return a tuple of unknown length."""
    return UNKNOWN if _depth(elem) >= _DEEPEST_TUPLE else Value(Kind.TUPLE, elem=elem)


def _depth(value: Value) -> int:
    if value.kind not in {Kind.TUPLE, Kind.ITER}:
        return 0
    inner = value.items or ((value.elem,) if value.elem else ())
    return 1 + max((_depth(one) for one in inner), default=0)


@dataclass(slots=True)
class Heap:
    """All regions of one analysis.

    Attributes:
        version: Grows with everything that is learnt; equal versions mean nothing new.
    """

    version: int = 0
    _parent: list[int] = field(default_factory=list)
    _birth: list[int] = field(default_factory=list)
    _content: dict[int, Value] = field(default_factory=dict)
    _keys: dict[int, Value] = field(default_factory=dict)
    _sites: dict[tuple[object, ...], int] = field(default_factory=dict)
    _live: set[int] = field(default_factory=set)

    @property
    def now(self) -> int:
        """The birth of the next region."""
        return len(self._parent)

    def region(self, site: tuple[object, ...], *, live: bool = False) -> int:
        """Return the region of all objects made at a site; a live one is older than the cell."""
        found = self._sites.get(site)
        if found is None:
            found = self._sites[site] = len(self._parent)
            self._parent.append(found)
            self._birth.append(-1 if live else found)
        return self.find(found)

    def find(self, region: int) -> int:
        """Return the region that stands for all that it was merged with."""
        while self._parent[region] != region:
            self._parent[region] = self._parent[self._parent[region]]
            region = self._parent[region]
        return region

    def birth(self, region: int) -> int:
        """Return when the oldest of its objects was made; -1 for before the cell."""
        return self._birth[self.find(region)]

    def union(self, left: int, right: int) -> int:
        """Merge two regions."""
        left, right = self.find(left), self.find(right)
        if left == right:
            return left
        self.version += 1
        self._parent[right] = left
        self._birth[left] = min(self._birth[left], self._birth[right])
        for table in (self._content, self._keys):
            moved = table.pop(right, None)
            if moved is not None:
                self._grow(table, left, moved)
        return self.find(left)

    def content(self, region: int) -> Value:
        """Return the join of all that was ever stored in it."""
        return self._content.get(self.find(region), BOTTOM)

    def keys(self, region: int) -> Value:
        """Return the join of a dict's keys."""
        return self._keys.get(self.find(region), BOTTOM)

    def store(self, region: int, value: Value, key: Value | None = None) -> None:
        """Learn that a value (under a key) may be in a region.

        Storing BOTTOM marks the region as one that can hold values, for `forget`.
        """
        self._grow(self._content, self.find(region), value)
        if key is not None:
            self._grow(self._keys, self.find(region), key)

    def _grow(self, table: dict[int, Value], region: int, value: Value) -> None:
        joined = self.join(table.get(region, BOTTOM), value)
        region = self.find(region)
        # The join may have merged this very region with another.
        joined = self.join(joined, table.get(region, BOTTOM))
        if table.get(region) != joined:
            table[region] = joined
            self.version += 1

    def forget(self) -> None:
        """Code of unknown effect ran: any container may now hold anything."""
        for region in list(self._content):
            self.store(region, UNKNOWN, UNKNOWN)

    def forget_value(self, value: Value) -> None:
        """As `forget`, for the objects of one value."""
        for region in self.reach(value) & set(self._content):
            self.store(region, UNKNOWN, UNKNOWN)

    def join(self, left: Value, right: Value) -> Value:  # noqa: PLR0911  (a lattice)
        """Return what holds of a value that is one or the other."""
        if left == right or right.kind is Kind.BOTTOM:
            return left
        if left.kind is Kind.BOTTOM:
            return right
        pair = {left.kind, right.kind}
        if Kind.UNKNOWN in pair:
            return UNKNOWN
        if pair <= SCALARS:
            return NUM if pair <= NUMBERS else Value(left.kind) if len(pair) == 1 else SCALAR
        if len(pair) == 1:
            return self._join_same(left, right)
        array, other = (left, right) if left.kind is Kind.ARRAY else (right, left)
        if array.kind is Kind.ARRAY and other.kind in NUMBERS | {Kind.NONE}:
            return array
        something = left if right.kind is Kind.NONE else right
        if Kind.NONE in pair and something.kind in WITH_CONTENT | {Kind.FRAME, Kind.TUPLE}:
            return something
        return self._join_plain(left, right)

    def _join_plain(self, left: Value, right: Value) -> Value:
        """Return plain data that may be of one kind or another."""
        parts = [*self.parts(left), *self.parts(right)]
        if not all(one.kind in _PLAIN for one in parts):
            return UNKNOWN
        region: int | None = None
        for one in sorted(self.reach(left) | self.reach(right)):
            region = one if region is None else self.union(region, one)
        return SCALAR if region is None else Value(Kind.PLAIN, region=self.find(region))

    def _join_same(self, left: Value, right: Value) -> Value:
        kind = left.kind
        if kind is Kind.TUPLE:
            return self._join_tuples(left, right)
        if left.ref != right.ref or kind in {Kind.MODULE, Kind.CALLABLE, Kind.CLOSURE}:
            return left if left.ref == right.ref else UNKNOWN
        elem = self.join(left.elem or BOTTOM, right.elem or BOTTOM) if kind is Kind.ITER else None
        if left.region is None or right.region is None:
            return UNKNOWN
        return Value(kind, region=self.union(left.region, right.region), elem=elem, ref=left.ref)

    def _join_tuples(self, left: Value, right: Value) -> Value:
        both = left.items is not None and right.items is not None
        if both and len(left.items or ()) == len(right.items or ()):
            return tuple_of(*map(self.join, left.items or (), right.items or ()))
        return tuple_all(self.join(self.any_item(left), self.any_item(right)))

    def any_item(self, value: Value) -> Value:
        """Return the join of a tuple's elements."""
        joined = value.elem or BOTTOM
        for item in value.items or ():
            joined = self.join(joined, item)
        return joined

    def reach(self, value: Value) -> set[int]:
        """Return every region that can be reached from a value."""
        seen: set[int] = set()
        pending = [value]
        while pending:
            one = pending.pop()
            pending += one.items or ()
            pending += [one.elem] if one.elem is not None else []
            if one.region is not None:
                region = self.find(one.region)
                if region not in seen:
                    seen.add(region)
                    pending += [self.content(region), self.keys(region)]
        return seen

    def parts(self, value: Value) -> Iterator[Value]:
        """Yield a value and all that it holds, each region's content once."""
        seen: set[int] = set()
        pending = [value]
        while pending:
            one = pending.pop()
            yield one
            pending += one.items or ()
            pending += [one.elem] if one.elem is not None else []
            if one.region is not None and self.find(one.region) not in seen:
                seen.add(self.find(one.region))
                pending += [self.content(one.region), self.keys(one.region)]

    def shippable(self, value: Value) -> bool:
        """Whether a copy of the value is as good as the value."""
        return all(one.kind in SHIPPABLE or one.kind is Kind.BOTTOM for one in self.parts(value))

    def readable(self, value: Value) -> bool:
        """Whether reading it runs no code of the user's: all that it holds is known."""
        return all(one.kind is not Kind.UNKNOWN for one in self.parts(value))
