"""What changed in a list, dict, set, bytearray, deque or array, and how it is written back.

Only the container itself is compared, by the identity of what it holds: what is inside came from
the kernel under a number of its own and is compared for itself. The methods are those of the
built-in types, whatever a subclass does in its own.
"""

from __future__ import annotations

import array
import collections
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """One side of an object that can change.

    Attributes:
        take: Object → what to remember of it at arrival.
        difference: Object and what was remembered → its new state; None where nothing changed.
        put: Object of the kernel and new state → nothing; makes it so. Found by name there.
    """

    take: Callable[[Any], Any]
    difference: Callable[[Any, Any], Any]
    put: Callable[[Any, Any], None]


def _list_difference(items: list[Any], before: list[Any]) -> tuple[int, int, list[Any]] | None:
    now = list.copy(items)
    if _same(now, before):
        return None
    shorter = min(len(now), len(before))
    start = _common(now, before, shorter)
    end = _common(reversed(now), reversed(before), shorter - start)
    return start, len(before) - end, now[start : len(now) - end]


def put_list(items: list[Any], state: tuple[int, int, list[Any]]) -> None:
    """Replaces the part of a list that changed."""
    start, stop, part = state
    list.__setitem__(items, slice(start, stop), part)


def _take_dict(items: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    base = _dict_type(items)
    return list(base.keys(items)), list(base.values(items))


def _dict_difference(
    items: dict[Any, Any], before: tuple[list[Any], list[Any]]
) -> tuple[bool, list[tuple[Any, Any]]] | None:
    keys, values = _take_dict(items)
    keys_before, values_before = before
    if _same(keys, keys_before) and _same(values, values_before):
        return None
    if len(keys) < len(keys_before) or not _same(keys[: len(keys_before)], keys_before):
        return True, list(zip(keys, values, strict=True))
    changed = [
        (key, value)
        for key, value, was in zip(keys, values, values_before, strict=False)
        if value is not was
    ]
    added = zip(keys[len(keys_before) :], values[len(keys_before) :], strict=True)
    return False, [*changed, *added]


def put_dict(items: dict[Any, Any], state: tuple[bool, list[tuple[Any, Any]]]) -> None:
    """Sets the items of a dict that changed; all of them, in order, where some went."""
    anew, changed = state
    base = _dict_type(items)
    if anew:
        base.clear(items)
    for key, value in changed:
        base.__setitem__(items, key, value)


def _take_factory(items: collections.defaultdict[Any, Any]) -> Any:
    return (items.default_factory,)


def _factory_difference(items: collections.defaultdict[Any, Any], before: tuple[Any]) -> Any:
    return None if items.default_factory is before[0] else (items.default_factory,)


def put_factory(items: collections.defaultdict[Any, Any], state: tuple[Any]) -> None:
    """Sets a defaultdict's factory."""
    (items.default_factory,) = state


def _take_set(items: set[Any]) -> dict[int, Any]:
    return {id(item): item for item in set.__iter__(items)}


def _set_difference(items: set[Any], before: dict[int, Any]) -> tuple[list[Any]] | None:
    now = _take_set(items)
    return None if now.keys() == before.keys() else (list(now.values()),)


def put_set(items: set[Any], state: tuple[list[Any]]) -> None:
    """Replaces what is in a set."""
    (now,) = state
    set.clear(items)
    set.update(items, now)


def _bytearray_difference(items: bytearray, before: bytes) -> tuple[bytes] | None:
    return None if items == before else (bytes(items),)


def put_bytearray(items: bytearray, state: tuple[bytes]) -> None:
    """Replaces the bytes of a bytearray."""
    (now,) = state
    bytearray.__setitem__(items, slice(None), now)


def _take_deque(items: collections.deque[Any]) -> list[Any]:
    return list(collections.deque.__iter__(items))


def _deque_difference(items: collections.deque[Any], before: list[Any]) -> tuple[list[Any]] | None:
    now = _take_deque(items)
    return None if _same(now, before) else (now,)


def put_deque(items: collections.deque[Any], state: tuple[list[Any]]) -> None:
    """Replaces what is in a deque."""
    (now,) = state
    collections.deque.clear(items)
    collections.deque.extend(items, now)


def _take_array(items: array.array[Any]) -> bytes:
    return items.tobytes()


def _array_difference(items: array.array[Any], before: bytes) -> tuple[bytes] | None:
    now = items.tobytes()
    return None if now == before else (now,)


def put_array(items: array.array[Any], state: tuple[bytes]) -> None:
    """Replaces what is in an array."""
    (now,) = state
    array.array.__setitem__(items, slice(None), array.array(items.typecode, now))


_DICT: Final = Facet(take=_take_dict, difference=_dict_difference, put=put_dict)
_FACTORY: Final = Facet(take=_take_factory, difference=_factory_difference, put=put_factory)
_FACETS: Final = {
    list: (Facet(take=list.copy, difference=_list_difference, put=put_list),),
    collections.defaultdict: (_DICT, _FACTORY),
    dict: (_DICT,),
    set: (Facet(take=_take_set, difference=_set_difference, put=put_set),),
    bytearray: (Facet(take=bytes, difference=_bytearray_difference, put=put_bytearray),),
    collections.deque: (Facet(take=_take_deque, difference=_deque_difference, put=put_deque),),
    array.array: (Facet(take=_take_array, difference=_array_difference, put=put_array),),
}


def container_facets(cls: type) -> tuple[Facet, ...]:
    """Returns what can change in the items of an instance of `cls`; empty for no container."""
    return next((facets for base, facets in _FACETS.items() if issubclass(cls, base)), ())


def _dict_type(items: dict[Any, Any]) -> Any:
    """Returns the type whose methods keep the order of an `OrderedDict` too."""
    return collections.OrderedDict if isinstance(items, collections.OrderedDict) else dict


def _same(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(map(operator.is_, first, second))


def _common(first: Iterable[Any], second: Iterable[Any], most: int) -> int:
    """Returns how many of the first `most` items are the same objects in both."""
    for count, (one, other) in enumerate(zip(first, second, strict=False)):
        if count == most or one is not other:
            return count
    return most
