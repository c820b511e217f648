"""Exceptions: how they cross, whatever their constructors take and they say of pickling.

An exception of Python's own layout, as nearly all are, is made without its constructor and is then
given what it held: attributes, slots, and what the built-in type keeps out of sight. Its traceback
stays behind, since frames cannot cross.
"""

from __future__ import annotations

import contextlib
import pickle
import types
from typing import Any, Final

from workbench.boundary.instances import set_instance, slots_of
from workbench.boundary.kinds import core_type

State = tuple[dict[str, Any], dict[str, Any], dict[str, Any], tuple[Any, ...], tuple[Any, ...]]
"""Attributes, slots, built-in fields, args; cause, context and whether the latter is hidden."""

_BASE: Final = vars(BaseException)
_WITHOUT_FIELDS: Final = (BaseExceptionGroup, BaseException, object)
_LOOKED_AT: Final = "obj"
"""Where an attribute was not found. Python leaves it out too: it can be anything, and large."""


def reduce_exception(error: BaseException) -> Any:
    """Reduces an exception with all that it holds."""
    return *recipe_of(error), state_of(error), None, None, set_exception


def recipe_of(error: BaseException) -> tuple[Any, Any]:
    """Returns what makes an exception of the same type, and out of what."""
    cls = type(error)
    if not has_foreign_layout(cls):
        parts = (error.message, error.exceptions) if isinstance(error, BaseExceptionGroup) else ()
        return make_exception, (cls, parts)
    reduced: Any = error.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    make, args, *_ = reduced
    return make, args


def has_foreign_layout(cls: type) -> bool:
    """Returns whether an extension's C code lays it out, so that only the type can make one."""
    return core_type(cls).__module__ != "builtins"


def state_of(error: BaseException) -> State:
    """Returns what an exception holds."""
    fields = {}
    for name, field in _fields(type(error)).items():
        with contextlib.suppress(AttributeError):  # It has not been set.
            fields[name] = field.__get__(error)
    links = (error.__cause__, error.__context__, error.__suppress_context__)
    args = _BASE["args"].__get__(error)
    return error.__dict__, slots_of(error), fields, args, links


def make_exception(cls: type, parts: tuple[Any, ...]) -> BaseException:
    """Returns an exception that holds nothing yet; a group has its members from the start."""
    error: BaseException = core_type(cls).__new__(cls, *parts)
    return error


def set_exception(error: BaseException, state: State) -> None:
    """Gives an exception what it held, whatever its class does where an attribute is set."""
    own, slots, fields, args, (cause, context, is_hidden) = state
    set_instance(error, (own, slots))
    ways = _fields(type(error))
    for name, value in fields.items():
        if value is not None:
            ways[name].__set__(error, value)
    _BASE["args"].__set__(error, args)
    _BASE["__cause__"].__set__(error, cause)
    _BASE["__context__"].__set__(error, context)
    _BASE["__suppress_context__"].__set__(error, is_hidden)


def _fields(cls: type) -> dict[str, Any]:
    """Returns what reads and sets what a built-in type keeps beside `args`, such as `errno`."""
    bases = () if has_foreign_layout(cls) else core_type(cls).__mro__
    return {
        name: field
        for base in bases
        if base not in _WITHOUT_FIELDS
        for name, field in vars(base).items()
        if isinstance(field, types.MemberDescriptorType | types.GetSetDescriptorType)
        and name != _LOOKED_AT
    }
