"""Instances of classes written in Python, and exceptions."""

from __future__ import annotations

import copyreg
import sys
from collections.abc import Iterator
from typing import Any, Final

from workbench.boundary.kinds import is_importable, slot_names


def reduce_instance(value: Any) -> Any:
    """Reduces a plain instance together with its very `__dict__`.

    Another name for that dict (`vars(x)`) then is that dict on the other side too.
    """
    cls = type(value)
    own = getattr(value, "__dict__", None)
    slots = _slots(value)
    if not own and not slots and (name := _module_constant(value)) is not None:
        return name
    listitems = list.__iter__(value) if isinstance(value, list) else None
    dictitems = iter(dict.items(value)) if isinstance(value, dict) else None
    if slots:
        state: Any = (own, slots)
        return _NEW, (cls,), state, listitems, dictitems, set_instance
    return _NEW, (cls,), own, listitems, dictitems, set_own


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


def _slots(value: Any) -> dict[str, Any]:
    names = slot_names(type(value))
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def reduce_exception(error: BaseException) -> Any:
    """Reduces an exception, whatever arguments its constructor takes.

    Its traceback stays behind: frames cannot cross.
    """
    cls = type(error)
    python_init = not isinstance(cls.__init__, _SLOT_WRAPPER)
    if cls.__reduce__ is BaseException.__reduce__ and python_init:
        args: tuple[Any, ...] = (make_exception, (cls, error.args))
    else:
        reduced: Any = error.__reduce_ex__(4)
        args = reduced[:2]
    links = (error.__cause__, error.__context__, error.__suppress_context__)
    return *args, ((error.__dict__, _slots(error)), links), None, None, set_exception


def make_exception(cls: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """Returns an exception that was not constructed by its own class, but by the built-in one."""
    error = cls.__new__(cls, *args)
    inits: Iterator[Any] = (vars(base).get("__init__") for base in cls.__mro__)
    next(init for init in inits if isinstance(init, _SLOT_WRAPPER))(error, *args)
    error.args = args
    return error


def set_exception(error: BaseException, state: tuple[Any, ...]) -> None:
    """Gives an exception its attributes and what it arose from."""
    own, (error.__cause__, error.__context__, error.__suppress_context__) = state
    set_instance(error, own)


_SLOT_WRAPPER = type(object.__init__)


def _module_constant(value: Any) -> str | None:
    """Returns the name under which the value's module holds it, as sentinels are kept."""
    cls = type(value)
    module = sys.modules.get(cls.__module__)
    if module is None or not is_importable(cls):
        return None
    return next((name for name, held in vars(module).items() if held is value), None)
