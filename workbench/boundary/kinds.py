"""Which kind of object something is: importable, plain, or with a state that only C code sees."""

from __future__ import annotations

import array
import collections
import copyreg
import functools
import sys
import types
from typing import Any, Final

CONTAINERS: Final = (list, dict, set, bytearray, collections.deque, array.array)
"""Built-in types whose content is compared and written back; their subclasses too."""

_PICKLING: Final = ("__reduce_ex__", "__reduce__", "__getstate__")
_NOT_TO_CALL: Final = 1 << 7  # Py_TPFLAGS_DISALLOW_INSTANTIATION
_MADE_AT_RUN_TIME: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def is_importable(thing: Any) -> bool:
    """Returns whether a function or class is what its module holds under its qualified name.

    Such a thing crosses by name. What the notebook itself defines never is.
    """
    module_name = getattr(thing, "__module__", None)
    module = sys.modules.get(module_name) if isinstance(module_name, str) else None
    if module is None or module_name == "__main__" or getattr(module, "__spec__", None) is None:
        return False
    found: Any = module
    for part in thing.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is thing


def is_importable_module(module: Any) -> bool:
    """Returns whether another process can import a module by its name."""
    name: str = module.__name__
    is_known = sys.modules.get(name) is module
    return is_known and getattr(module, "__spec__", None) is not None and name != "__main__"


@functools.cache
def core_type(cls: type[Any]) -> type[Any]:
    """Returns the innermost type that C code lays out: `object` for a class written in Python."""
    for base in cls.__mro__:
        new = base.__dict__.get("__new__")
        makes = isinstance(new, types.BuiltinFunctionType) and new.__self__ is base
        if makes or base.__flags__ & _NOT_TO_CALL or not base.__flags__ & _MADE_AT_RUN_TIME:
            return base
    return object


@functools.cache
def is_plain(cls: type) -> bool:
    """Returns whether attributes, slots and the items of a list or dict are an instance's all.

    Such an instance crosses with its very `__dict__`, and has nothing to say about how it is
    pickled.
    """
    return (
        core_type(cls) in (object, list, dict)
        and all(getattr(cls, name) is getattr(object, name) for name in _PICKLING)
        and not any(
            hasattr(cls, name) for name in ("__setstate__", "__getnewargs__", "__getnewargs_ex__")
        )
        and cls not in copyreg.dispatch_table
    )


@functools.cache
def has_hidden_state(cls: type) -> bool:
    """Returns whether C code may keep a state that changes and that only `__reduce_ex__` shows.

    By convention what defines its own hash by value does not change.
    """
    core = core_type(cls)
    return not (
        core in (object, type)
        or issubclass(core, (*CONTAINERS, type, BaseException))
        or core in _CONSTANT
        or has_own_hash(core)
    )


def has_own_hash(cls: type[Any]) -> bool:
    """Returns whether instances are told apart by what they are worth, not by which they are."""
    own: Any = cls.__hash__
    return own is not None and own is not object.__hash__


_CONSTANT: Final = frozenset(
    {
        slice,
        property,
        staticmethod,
        classmethod,
        types.FunctionType,
        types.CellType,
        types.ModuleType,
        types.MappingProxyType,
        types.MethodDescriptorType,
        types.ClassMethodDescriptorType,
        types.WrapperDescriptorType,
        types.MethodWrapperType,
        types.GetSetDescriptorType,
        types.MemberDescriptorType,
        type(functools.lru_cache(len)),
        type({}.keys()),
        type({}.values()),
        type({}.items()),
        type(collections.OrderedDict().keys()),
        type(collections.OrderedDict().values()),
        type(collections.OrderedDict().items()),
    }
)
"""C types that compare by identity, or not at all, and that never change or are treated apart."""


def slot_names(cls: type) -> list[str]:
    """Returns the names of all slots of a class and its bases, as attributes are named."""
    names: list[str] = copyreg._slotnames(cls)  # type: ignore[attr-defined]  # noqa: SLF001  (pickle's own list)
    return names
