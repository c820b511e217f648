"""One pickle memo for both directions.

What one side has pickled, the other has unpickled under the same number. So when the answer is
pickled with a memo that already holds those objects, each of them is written as its number alone,
and the first side reads it back as the very same object: no copy, no redefinition.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import io
import os
import pickle
import pickletools
import random
import struct
import sys
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from workbench.boundary.errors import GoneError
from workbench.boundary.kinds import is_importable
from workbench.boundary.labels import Label

_PROTOCOL_5: Final = b"\x80\x05"
_PUSH_KNOWN: Final = struct.Struct("<cicc")  # BININT i, BINPERSID, LONG_BINPUT …
_PUT_POP: Final = struct.Struct("<Ic")  # … i, POP
_NONE_STOP: Final = b"N."
_FILLER: Final = -1
_COUNTED: Final = ("MEMOIZE", "NEXT_BUFFER")
_BY_NAME: Final = (type, types.FunctionType, types.BuiltinFunctionType)
_WHOLE: Final = frozenset({str, bytes, types.ModuleType, Label})
_REFERENCES: Final = frozenset({"BINGET", "LONG_BINGET"})


def always_known(namespace: Mapping[str, Any]) -> list[object]:
    """Returns what each process has of its own and must never be copied into the other.

    Args:
        namespace: The names of the notebook in this process.

    Returns:
        The objects, in the order in which both sides number them from 0.
    """
    main = sys.modules["__main__"]
    return [
        namespace,
        main,
        vars(main),
        builtins.__dict__,
        sys.modules,
        sys.path,
        sys.argv,
        sys.stdin,
        sys.stdout,
        sys.stderr,
        sys.__stdin__,
        sys.__stdout__,
        sys.__stderr__,
        os.environ,
        warnings.filters,
        random._inst,  # noqa: SLF001  (`from random import random` is bound to it)
    ]


@contextlib.contextmanager
def collection_paused() -> Iterator[None]:
    """Keeps the garbage collector from walking again and again over what is being built."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def seed(pickler: pickle.Pickler, known: Sequence[object]) -> None:
    """Makes a fresh pickler write each known object as its number.

    Args:
        pickler: The pickler.
        known: The objects by number, as the reader will give them to `Reader`.
    """
    memo: dict[int, tuple[int, object]] = {}
    for number in range(len(known) - 1, -1, -1):
        memo[id(known[number])] = (number, known[number])
    # New objects are numbered from the memo's size on, so it must not be smaller where two numbers
    # are one object.
    for _ in range(len(known) - len(memo)):
        filler = object()
        memo[id(filler)] = (_FILLER, filler)
    pickler.memo = memo


def numbered(pickler: pickle.Pickler, known: Sequence[object]) -> list[Any]:
    """Returns the objects that a pickler knows by now, by number.

    Args:
        pickler: The pickler, after its dumps.
        known: What it was seeded with.
    """
    entries: list[tuple[int, Any]] = list(pickler.memo.copy().values())
    objects: list[Any] = [*known, *[None] * (len(entries) - len(known))]
    for number, value in entries:
        if number >= len(known):
            objects[number] = value
    return objects


class Reader:
    """Loads pickle streams one after another, all with one memo.

    Args:
        body: The streams.
        known: The objects that the writer knew, by number.
        buffers: The buffers that the streams refer to, in order.
    """

    def __init__(
        self, body: bytes, known: Sequence[object], buffers: Sequence[memoryview] = ()
    ) -> None:
        self._gone: set[int] = set()
        self._begin(body, known, buffers)

    def _begin(self, body: bytes, known: Sequence[object], buffers: Sequence[memoryview]) -> None:
        prologue = _prologue(len(known))
        self._streams = io.BytesIO(prologue + body)
        self._known_count = len(known)
        self._buffers = buffers
        self._unpickler = _Unpickler(self._streams, buffers=buffers)
        self._unpickler.persistent_load = known.__getitem__  # type: ignore[method-assign]
        self._unpickler.load()
        self._first_stream = self._next_stream = len(prologue)

    def load(self) -> Any:
        """Returns the next stream's object.

        Raises:
            GoneError: It refers to something in a stream that was passed over.
            Exception: It cannot be made; the next step is `pass_over`.
        """
        if self._gone:
            self._refuse_what_is_gone()
        value = self._unpickler.load()
        self._next_stream = self._streams.tell()
        return value

    def pass_over(self) -> None:
        """Goes on after a stream that could not be loaded; what it has made is gone.

        Later streams number their objects as if it had been loaded.
        """
        memo: dict[int, Any] = self._unpickler.memo.copy()
        self._streams.seek(self._first_stream)
        first, end, buffers_taken = 0, self._known_count, 0
        while self._streams.tell() <= self._next_stream:
            contents = _look_through(self._streams)
            first, end = end, end + contents.memoized
            buffers_taken += contents.buffers
        known = [memo.get(number) for number in range(end)]
        self._gone.update(number for number in range(first, end) if not _is_whole(known[number]))
        self._begin(self._streams.read(), known, self._buffers[buffers_taken:])

    def numbered(self) -> list[Any]:
        """Returns the objects that were loaded so far, by number."""
        memo: dict[int, Any] = self._unpickler.memo.copy()
        return [memo[number] for number in range(len(memo))]

    def _refuse_what_is_gone(self) -> None:
        contents = _look_through(self._streams)
        self._streams.seek(self._next_stream)
        if not self._gone.isdisjoint(contents.references):
            raise GoneError("it shares objects with what cannot be made here")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """What a stream has in it.

    Attributes:
        memoized: How many objects it numbers.
        buffers: How many buffers it takes.
        references: The numbers that it refers to.
    """

    memoized: int
    buffers: int
    references: frozenset[int]


def _is_whole(value: Any) -> bool:
    """Returns whether there is nothing left to do for an object once it is made."""
    cls = type(value)
    if issubclass(cls, _BY_NAME):
        return is_importable(value)
    numpy = sys.modules.get("numpy")  # Every array has its type's only one.
    return cls in _WHOLE or (numpy is not None and issubclass(cls, numpy.dtype))


def _look_through(stream: io.BytesIO) -> _Contents:
    """Reads on to a stream's end, and makes nothing of it."""
    counts = dict.fromkeys(_COUNTED, 0)
    references: set[int] = set()
    for opcode, argument, _ in pickletools.genops(stream):
        if opcode.name in _COUNTED:
            counts[opcode.name] += 1
        elif opcode.name in _REFERENCES:
            references.add(cast("int", argument))
    memoized, buffers = counts.values()
    return _Contents(memoized=memoized, buffers=buffers, references=frozenset(references))


class _Unpickler(pickle.Unpickler):
    """Takes attributes, which the base does not."""


def _prologue(count: int) -> bytes:
    """Returns a stream that loads every known object once, so that it stands in the memo."""
    parts = [
        _PUSH_KNOWN.pack(b"J", number, b"Q", b"r") + _PUT_POP.pack(number, b"0")
        for number in range(count)
    ]
    return _PROTOCOL_5 + b"".join(parts) + _NONE_STOP
