"""What changed in the attributes of an instance, a function, a class or a cell."""

from __future__ import annotations

import types
from typing import Any, Final

from workbench.boundary.classes import class_attributes, delete_attribute, set_attribute
from workbench.boundary.containers import Facet
from workbench.boundary.instances import slots_of
from workbench.boundary.kinds import is_importable

_ABSENT: Final = object()  # Never an attribute's value.
_CLASS_OF: Final = vars(object)["__class__"]
_OF_FUNCTIONS: Final = (
    "__code__",
    "__defaults__",
    "__kwdefaults__",
    "__annotations__",
    "__doc__",
    "__module__",
    "__name__",
    "__qualname__",
)

Difference = tuple[dict[str, Any], list[str]]
"""Attributes that were set, and the names of those that were deleted."""


def _compare(now: dict[str, Any], before: dict[str, Any]) -> Difference | None:
    changed = {name: value for name, value in now.items() if before.get(name, _ABSENT) is not value}
    gone = [name for name in before if name not in now]
    return (changed, gone) if changed or gone else None


def _take_own_dict(value: Any) -> dict[str, Any]:
    own: dict[str, Any] = value.__dict__
    return own


def _own_dict_difference(value: Any, before: dict[str, Any]) -> tuple[dict[str, Any]] | None:
    return None if value.__dict__ is before else (value.__dict__,)


def put_own_dict(value: Any, state: tuple[dict[str, Any]]) -> None:
    """Gives an instance another `__dict__`."""
    (own,) = state
    object.__setattr__(value, "__dict__", own)


def put_attributes(value: Any, state: Difference) -> None:
    """Sets and deletes attributes in the instance's `__dict__`, whatever its class does."""
    changed, gone = state
    for name in gone:
        value.__dict__.pop(name, None)
    value.__dict__.update(changed)


def _slots_difference(value: Any, before: dict[str, Any]) -> Difference | None:
    return _compare(slots_of(value), before)


def put_slots(value: Any, state: Difference) -> None:
    """Sets and deletes slots, whatever the class does where one is set."""
    changed, gone = state
    for name in gone:
        object.__delattr__(value, name)
    for name, content in changed.items():
        object.__setattr__(value, name, content)


def _take_class(value: Any) -> type:
    return type(value)


def _class_difference(value: Any, before: type) -> tuple[type] | None:
    return None if type(value) is before else (type(value),)


def put_class(value: Any, state: tuple[type]) -> None:
    """Makes an instance one of another class."""
    (cls,) = state
    _CLASS_OF.__set__(value, cls)


def _take_function(function: Any) -> dict[str, Any]:
    return {name: getattr(function, name) for name in _OF_FUNCTIONS}


def _function_difference(function: Any, before: dict[str, Any]) -> Difference | None:
    return _compare(_take_function(function), before)


def put_function(function: Any, state: Difference) -> None:
    """Sets a function's own attributes."""
    changed, _ = state
    for name, value in changed.items():
        setattr(function, name, value)


def _definition_difference(cls: type, before: dict[str, Any]) -> Difference | None:
    return _compare(class_attributes(cls), before)


def put_definition(cls: type, state: Difference) -> None:
    """Sets and deletes attributes of a class."""
    changed, gone = state
    for name in gone:
        delete_attribute(cls, name)
    for name, value in changed.items():
        set_attribute(cls, name, value)


def _take_cell(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def _cell_difference(cell: types.CellType, before: tuple[Any, ...]) -> tuple[Any, ...] | None:
    now = _take_cell(cell)
    unchanged = len(now) == len(before) and all(map(lambda a, b: a is b, now, before))
    return None if unchanged else (now,)


def put_cell(cell: types.CellType, state: tuple[tuple[Any, ...]]) -> None:
    """Sets or empties a variable that closures share."""
    (content,) = state
    if content:
        (cell.cell_contents,) = content
    else:
        del cell.cell_contents


OWN_DICT: Final = Facet(take=_take_own_dict, difference=_own_dict_difference, put=put_own_dict)
SLOTS: Final = Facet(take=slots_of, difference=_slots_difference, put=put_slots)
CLASS: Final = Facet(take=_take_class, difference=_class_difference, put=put_class)
FUNCTION: Final = Facet(take=_take_function, difference=_function_difference, put=put_function)
CELL: Final = Facet(take=_take_cell, difference=_cell_difference, put=put_cell)
_DEFINITION: Final = Facet(
    take=class_attributes, difference=_definition_difference, put=put_definition
)


def definition_facets(thing: Any) -> tuple[Facet, ...]:
    """Returns what can change in a class or function; empty for one that crosses by name."""
    if is_importable(thing):
        return ()
    return (_DEFINITION,) if isinstance(thing, type) else (FUNCTION, OWN_DICT)
