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
import random
import struct
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

_PROTOCOL_5: Final = b"\x80\x05"
_PUSH_KNOWN: Final = struct.Struct("<cicc")  # BININT i, BINPERSID, LONG_BINPUT …
_PUT_POP: Final = struct.Struct("<Ic")  # … i, POP
_NONE_STOP: Final = b"N."
_FILLER: Final = -1


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
        self, body: bytes, known: Sequence[object], buffers: Iterable[memoryview] = ()
    ) -> None:
        stream = io.BytesIO(_prologue(len(known)) + body)
        self._unpickler = _Unpickler(stream, buffers=buffers)
        self._unpickler.persistent_load = known.__getitem__  # type: ignore[method-assign]
        self._unpickler.load()

    def load(self) -> Any:
        """Returns the next stream's object."""
        return self._unpickler.load()

    def numbered(self) -> list[Any]:
        """Returns the objects that were loaded so far, by number."""
        memo: dict[int, Any] = self._unpickler.memo.copy()
        return [memo[number] for number in range(len(memo))]


class _Unpickler(pickle.Unpickler):
    """Takes attributes, which the base does not."""


def _prologue(count: int) -> bytes:
    """Returns a stream that loads every known object once, so that it stands in the memo."""
    parts = [
        _PUSH_KNOWN.pack(b"J", number, b"Q", b"r") + _PUT_POP.pack(number, b"0")
        for number in range(count)
    ]
    return _PROTOCOL_5 + b"".join(parts) + _NONE_STOP
