"""Looks at users' objects without running any code of theirs.

`isinstance`, `hasattr` and `getattr` run it: a class may define `__class__`, `__getattr__` or a
metaclass of its own, and any of them may raise or lie.
"""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

_mro_of = type.__dict__["__mro__"].__get__
_module_of_type = type.__dict__["__module__"].__get__


def is_a(value: Any, *kinds: type) -> bool:
    """Return whether the type that `value` truly has is one of `kinds`, or derived from one."""
    return any(kind in bases(type(value)) for kind in kinds)


def bases(cls: type) -> tuple[type, ...]:
    """Return a class and all that it is derived from, whatever its metaclass would say."""
    found: tuple[type, ...] = _mro_of(cls)
    return found


def module_of(value: Any) -> str:
    """Return the module that a value comes from: its own, or else its type's; empty for none."""
    found: Any
    if is_a(value, ModuleType):
        found = attributes(value).get("__name__")
    elif is_a(value, type):
        found = _module_of_type(value)
    elif type(value) in {FunctionType, BuiltinFunctionType}:
        found = value.__module__
    else:
        found = attributes(value).get("__module__") or _module_of_type(type(value))
    return found if type(found) is str else ""


def attributes(value: Any) -> dict[str, Any]:
    """Return the attributes that lie in the object itself; empty where it has no place for any."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}
