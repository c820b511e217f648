"""The types that never cross, why, and what to do instead.

Most of them pickle refuses too, but it cannot say what a user should do; some it would copy, and
the copy would not be the thing.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final, NoReturn

from workbench.boundary.errors import Refused
from workbench.boundary.kinds import core_type

_OPEN_IT: Final = "Close it and open it in the cell that uses it"
_CONNECT: Final = "Connect in the cell that uses it"
_START: Final = "Start it in the cell that uses it"
_MAKE: Final = "Make it in the cell that uses it"
_KEEP_ITEMS: Final = "Make it in the same cell, or keep its items in a list"

_BY_NAME: Final = {
    "_thread.lock": ("a lock", _MAKE),
    "_thread.RLock": ("a lock", _MAKE),
    "threading.Thread": ("a thread", _START),
    "threading.local": ("a value of each thread's own", _MAKE),
    "_socket.socket": ("a socket", _CONNECT),
    "subprocess.Popen": ("a running process", _START),
    "multiprocessing.process.BaseProcess": ("a process", _START),
    "concurrent.futures._base.Executor": ("a pool of workers", _START),
    "concurrent.futures._base.Future": ("a computation under way", "Wait for its result first"),
    "asyncio.events.AbstractEventLoop": ("an event loop", _MAKE),
    "_asyncio.Future": ("a computation under way", "Await its result first"),
    "sqlite3.Connection": ("a connection", _CONNECT),
    "sqlite3.Cursor": ("a connection", _CONNECT),
    "mmap.mmap": ("a view of a file", _OPEN_IT),
    "builtins.memoryview": ("a view of this process's memory", "Use bytes(it), or a numpy copy"),
    "builtins.generator": ("a suspended computation", _KEEP_ITEMS),
    "builtins.coroutine": ("a suspended computation", "Await it first"),
    "builtins.async_generator": ("a suspended computation", _KEEP_ITEMS),
    "builtins.frame": ("a suspended computation", "Delete the name"),
    "builtins.traceback": ("a suspended computation", "Delete the name"),
    "weakref.ReferenceType": ("a weak reference", "Use an ordinary reference"),
    "_weakrefset.WeakSet": ("a set of weak references", "Use an ordinary set"),
    "weakref.WeakKeyDictionary": ("a dict of weak references", "Use an ordinary dict"),
    "weakref.WeakValueDictionary": ("a dict of weak references", "Use an ordinary dict"),
}
"""Type → what it is, and the next step; subclasses too."""

_GPU_LIBRARIES: Final = frozenset({"cudf", "cugraph", "cuml", "cupy", "cupyx", "rmm"})
_IN_MEMORY: Final = (io.BytesIO, io.StringIO)
_ITERATES_IN_SIGHT: Final[tuple[Any, ...]] = (object, *_IN_MEMORY)


def refusal_of(cls: Any, *, outbound: bool) -> Callable[[Any], NoReturn] | None:
    """Returns what refuses the instances of a type; None where they may cross.

    Args:
        cls: The type.
        outbound: Whether they would go to the home. A new iterator may come back from there.
    """
    core = core_type(cls)
    for base in cls.__mro__:
        if found := _BY_NAME.get(f"{base.__module__}.{base.__qualname__}"):
            noun, next_step = found
            return _refuse(f"is {noun}", next_step)
    if issubclass(cls, io.IOBase) and not issubclass(cls, _IN_MEMORY):
        return _refuse("is an open file", _OPEN_IT)
    if str(cls.__module__).partition(".")[0] in _GPU_LIBRARIES:
        return _refuse(
            "lies on a GPU, which the kernel of a scheduled cell never touches",
            "Copy it to the host in the cell: .get(), .to_pandas() or the like",
        )
    iterates = any("__next__" in vars(base) for base in cls.__mro__)
    if outbound and iterates and core not in _ITERATES_IN_SIGHT:
        return _refuse("is an iterator: how far it has got could not be told back", _KEEP_ITEMS)
    return None


def _refuse(why: str, next_step: str) -> Callable[[Any], NoReturn]:
    def refuse(_: Any) -> NoReturn:
        raise Refused(why, next_step)

    return refuse
