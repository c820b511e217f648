"""Instances of classes written in Python."""

from __future__ import annotations

import copyreg
import functools
import sys
from typing import Any, Final

from workbench.boundary.kinds import is_importable, slot_names


def reduce_instance(value: Any) -> Any:
    """Reduces a plain instance together with its very `__dict__`.

    Another name for that dict (`vars(x)`) then is that dict on the other side too.
    """
    cls: type = type(value)
    make = make_instance if _is_masked(cls) else _NEW
    own = getattr(value, "__dict__", None)
    slots = slots_of(value)
    if not own and not slots and (name := _module_constant(value)) is not None:
        return name
    listitems = list.__iter__(value) if issubclass(cls, list) else None
    dictitems = iter(dict.items(value)) if issubclass(cls, dict) else None
    if slots:
        state: Any = (own, slots)
        return make, (cls,), state, listitems, dictitems, set_instance
    return make, (cls,), own, listitems, dictitems, set_own


def set_own(value: Any, own: dict[str, Any]) -> None:
    """Gives an instance without slots its attributes."""
    object.__setattr__(value, "__dict__", own)


def set_instance(value: Any, state: tuple[dict[str, Any] | None, dict[str, Any]]) -> None:
    """Gives an instance its attributes, whatever its class does where one is set."""
    own, slots = state
    if own is not None:
        object.__setattr__(value, "__dict__", own)
    for name, content in slots.items():
        object.__setattr__(value, name, content)


_NEW: Final = copyreg.__newobj__  # type: ignore[attr-defined]  # The pickler has an opcode for it.


def make_instance(cls: Any) -> Any:
    """Returns an instance that holds nothing yet."""
    return cls.__new__(cls)


@functools.cache
def _is_masked(cls: type) -> bool:
    """Returns whether instances say that they are of another class, at which the opcode fails."""
    return any("__class__" in vars(base) for base in cls.__mro__[:-1])


def slots_of(value: Any) -> dict[str, Any]:
    """Returns the slots of an instance that hold something."""
    names = slot_names(type(value))
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _module_constant(value: Any) -> str | None:
    """Returns the name under which the value's module holds it, as sentinels are kept."""
    cls = type(value)
    module = sys.modules.get(cls.__module__)
    if module is None or not is_importable(cls):
        return None
    return next((name for name, held in vars(module).items() if held is value), None)
