"""Classes of the notebook: they cross once, as definitions, and return as themselves.

A class is made bare and filled after it can be referred to, for its methods refer to it. Nothing
that runs where a class is defined runs again: neither `__init_subclass__` nor a metaclass of the
notebook; what these did is in the attributes that cross.
"""

from __future__ import annotations

import abc
import contextlib
import enum
import gc
import types
from collections.abc import Iterator
from typing import Any, Final

from cloudpickle import cloudpickle

from workbench.boundary.errors import Refused
from workbench.boundary.kinds import is_importable

_BUILTIN_NAMES: Final = {
    value: name for name, value in vars(types).items() if isinstance(value, type)
}
_NOT_STATE: Final = frozenset(
    {
        "__module__",
        "__slots__",
        "__abstractmethods__",
        "_abc_impl",
        "__slotnames__",
    }
)


def reduce_class(cls: type) -> Any:
    """Reduces a class: by name where it can be imported, else as a definition."""
    if is_importable(cls):
        return NotImplemented
    if cls in _BUILTIN_NAMES:
        return getattr, (types, _BUILTIN_NAMES[cls])
    if issubclass(cls, enum.Enum):
        return _reduce_enum(cls)
    if "__dict__" in class_attributes(cls):
        raise Refused(
            f"is the class {cls.__qualname__}, whose own __dict__ hides what its instances hold",
            "Give it another name",
        )
    own: dict[str, Any] = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    if "__slots__" in cls.__dict__:
        own["__slots__"] = cls.__dict__["__slots__"]
    args = (type(cls), cls.__name__, cls.__bases__, own)
    return make_class, args, (class_attributes(cls), *_abstract(cls)), None, None, set_class


def class_attributes(cls: type) -> dict[str, Any]:
    """Returns the attributes that a class was given, by name, in order."""
    return {
        name: value
        for name, value in cls.__dict__.items()
        if name not in _NOT_STATE
        and not isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType)
    }


def make_class(metaclass: type, name: str, bases: tuple[type, ...], own: dict[str, Any]) -> type:
    """Returns a class without its attributes."""
    maker = next(base for base in metaclass.__mro__ if is_importable(base))
    with _quiet(bases):
        cls: type = maker.__new__(metaclass, name, bases, dict(own))
    return cls


def set_class(cls: type, state: tuple[Any, ...]) -> None:
    """Gives a class its attributes."""
    attributes, abstract, registered = state
    for name, value in attributes.items():
        set_attribute(cls, name, value)
    if abstract is not None:
        cls.__abstractmethods__ = abstract  # type: ignore[attr-defined]
    for subclass in registered:
        cls.register(subclass)  # type: ignore[attr-defined]


def set_attribute(cls: type, name: str, value: Any) -> None:
    """Sets an attribute of a class, whatever its metaclass does where one is set."""
    if _is_shadowed(cls, name):
        _definition(cls)[name] = value
        _have_it_looked_up_anew(cls)
    else:
        type.__setattr__(cls, name, value)


def delete_attribute(cls: type, name: str) -> None:
    """Deletes an attribute of a class, whatever its metaclass does where one is deleted."""
    if _is_shadowed(cls, name):
        del _definition(cls)[name]
        _have_it_looked_up_anew(cls)
    else:
        type.__delattr__(cls, name)


def _is_shadowed(cls: type, name: str) -> bool:
    """Returns whether to set a name would set something of the class, such as its `__class__`."""
    metaclass: Any = type(cls)
    held = (vars(base)[name] for base in metaclass.__mro__ if name in vars(base))
    return hasattr(type(next(held, None)), "__set__")


def _definition(cls: type) -> dict[str, Any]:
    """Returns the very dict that `cls.__dict__` is a view of."""
    (definition,) = gc.get_referents(cls.__dict__)
    own: dict[str, Any] = definition
    return own


def _have_it_looked_up_anew(cls: type) -> None:
    """Has Python forget what it found in a class before."""
    type.__setattr__(cls, "__touched__", None)
    type.__delattr__(cls, "__touched__")


def _abstract(cls: type) -> tuple[frozenset[str] | None, list[type]]:
    """Returns the abstract methods of an abstract class, and the classes registered with it."""
    if not isinstance(cls, abc.ABCMeta):
        return None, []
    registry = abc._get_dump(cls)[0]  # type: ignore[attr-defined]  # noqa: SLF001  (the only way)
    registered = [subclass for reference in registry if (subclass := reference()) is not None]
    return cls.__abstractmethods__, registered


@contextlib.contextmanager
def _quiet(bases: tuple[type, ...]) -> Iterator[None]:
    """Keeps `__init_subclass__` of the bases from running."""
    hooks = {
        definer: definer.__dict__["__init_subclass__"]
        for base in bases
        for definer in base.__mro__
        if definer is not object
        and "__init_subclass__" in definer.__dict__
        and isinstance(definer.__dict__["__init_subclass__"], classmethod)
    }
    for definer in hooks:
        type.__setattr__(definer, "__init_subclass__", classmethod(lambda _, **__: None))
    try:
        yield
    finally:
        for definer, hook in hooks.items():
            type.__setattr__(definer, "__init_subclass__", hook)


def _reduce_enum(cls: type[enum.Enum]) -> Any:
    """Reduces an enum as cloudpickle does, but without its registry of classes seen before.

    With it a class that this process knows already would be found, and rewritten.
    """
    rebuild, args, *rest = cloudpickle._dynamic_class_reduce(cls)  # noqa: SLF001
    bases, name, qualname, members, module, _, extra = args
    return rebuild, (bases, name, qualname, members, module, None, extra), *rest
