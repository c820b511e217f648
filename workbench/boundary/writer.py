"""The pickler of the boundary: decides for each object how it crosses."""

from __future__ import annotations

import collections
import copyreg
import functools
import gc
import importlib
import io
import pickle
import sys
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from cloudpickle import cloudpickle

from workbench.boundary.classes import reduce_class
from workbench.boundary.deep import dump, dump_deeply
from workbench.boundary.errors import Refused
from workbench.boundary.exceptions import reduce_exception
from workbench.boundary.functions import FunctionReducer, reduce_cell, reduce_code
from workbench.boundary.instances import reduce_instance
from workbench.boundary.kinds import is_importable, is_importable_module, is_plain
from workbench.boundary.libraries import Run, loaded_libraries
from workbench.boundary.memo import numbered, seed
from workbench.boundary.refusals import refusal_of

Reduce = Callable[[Any], Any]

_VIEWS: Final[tuple[type, ...]] = (
    type({}.keys()),
    type({}.values()),
    type({}.items()),
    type(collections.OrderedDict().keys()),
    type(collections.OrderedDict().values()),
    type(collections.OrderedDict().items()),
)
_REFERENCES_IN_A_LOOP: Final = 3
_ATOMS: Final = (type(None), bool, int, float, complex, str, bytes)
_CALLED_WHEN_MADE: Final = (
    "__new__",
    "__setstate__",
    "__reduce__",
    "__reduce_ex__",
    "__hash__",
    "__eq__",
    "__getattr__",
    "__setitem__",
    "append",
    "extend",
)
_HOLDERS: Final = (tuple, list, dict)
_LRU_CACHE: Final = type(functools.lru_cache(len))
_COPIED_BY_CLOUDPICKLE: Final = (io.TextIOWrapper, memoryview, weakref.WeakSet)


class Writer(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles objects one after another, all with one memo.

    Args:
        namespace: The names of the notebook in this process.
        known: What the reader has under the same numbers.
        run: The pass that this is; on the way to the home nothing may go that could change there
            unseen.

    Attributes:
        functions: What it learned about the functions it met.
        buffers: The memory that was left out of the streams, in order.
        reached: The object that it was asked to reduce last: the culprit where a dump fails.
        runs_code: Whether to make what was written may run code of the notebook.
        temporary: By id, what objects made only to be pickled: a change of it is nobody's.
    """

    dispatch_table: ClassVar = collections.ChainMap(
        {
            cls: reduce
            for cls, reduce in cloudpickle.Pickler.dispatch_table.maps[0].items()
            if cls not in _COPIED_BY_CLOUDPICKLE
        },
        copyreg.dispatch_table,
    )

    def __init__(self, namespace: Mapping[str, Any], known: Sequence[object], run: Run) -> None:
        self.buffers: list[pickle.PickleBuffer] = []
        self._file = io.BytesIO()
        self._buffers_bytes = 0
        super().__init__(self._file, protocol=5, buffer_callback=self._leave_out)
        seed(self, known)
        self._written: list[Any] = []
        self._is_deep = False
        self._known = known
        self._run = run
        self._libraries = loaded_libraries()
        self.functions = FunctionReducer(namespace)
        self.reached: Any = None
        self.runs_code = False
        self.temporary: dict[int, Any] = {}
        self._reduce_by_type: dict[type, Reduce] = {
            types.FunctionType: self.functions.function,
            types.CellType: reduce_cell,
            types.CodeType: reduce_code,
            types.ModuleType: _reduce_module,
            functools.cached_property: _reduce_cached_property,
            _LRU_CACHE: self._reduce_lru_cache,
            **dict.fromkeys(_VIEWS, _reduce_view),
        }

    def dump(self, thing: Any) -> None:
        """Writes one stream."""
        self._written.append(thing)
        if self._is_deep:
            dump_deeply(self, thing)
            return
        try:
            dump(self, thing)
        except RecursionError:  # What it got to is in the memo, so all is written anew.
            self._is_deep = True
            self._begin_anew()
            dump_deeply(self, *self._written)

    def reducer_override(self, value: Any) -> Any:
        """Returns how an object is pickled; the pickler calls it for all but built-in values."""
        self.reached = value
        cls = type(value)
        reduce = self._reduce_by_type.get(cls)
        if reduce is None:
            reduce = self._reduce_by_type[cls] = self._choose(cls)
        return reduce(value)

    def numbered(self) -> list[Any]:
        """Returns the objects that were written so far, by number."""
        return numbered(self, self._known)

    def size_bytes(self) -> int:
        """Returns how much was written so far, buffers included."""
        return self._file.tell() + self._buffers_bytes

    def body(self) -> bytes:
        """Returns the streams that were written."""
        return self._file.getvalue()

    def _begin_anew(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self.buffers.clear()
        self._buffers_bytes = 0
        seed(self, self._known)

    def _leave_out(self, buffer: pickle.PickleBuffer) -> None:
        self.buffers.append(buffer)
        self._buffers_bytes += buffer.raw().nbytes

    def _choose(self, cls: type) -> Reduce:
        self.runs_code = self.runs_code or _runs_code_when_made(cls)
        if (refusal := refusal_of(cls, outbound=self._run.outbound)) is not None:
            return refusal
        for base, reduce in _REDUCE_BY_BASE.items():
            if issubclass(cls, base):
                return reduce
        for library in self._libraries:
            if (own := library.reducer_for(cls, self._run)) is not None:
                return own
        if cls in self.dispatch_table:
            return _by_default
        return reduce_instance if is_plain(cls) else self._reduce_own_way

    def _reduce_lru_cache(self, function: Any) -> Any:
        """Reduces a function under `lru_cache`; what it has cached stays behind."""
        if is_importable(function):
            return NotImplemented
        if function.cache_info().currsize:
            self._run.notes[f"the cache of {function.__name__} did not cross"] = None
        parameters = function.cache_parameters()
        args = (function.__wrapped__, parameters["maxsize"], parameters["typed"])
        return make_lru_cache, args, (function.__dict__,), None, None, set_lru_cache

    def _reduce_own_way(self, value: Any) -> Any:
        """Reduces what has a say in how it is pickled."""
        reduced = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if isinstance(reduced, tuple):
            self._note_temporary(reduced)
        return reduced

    def _note_temporary(self, reduced: tuple[Any, ...]) -> None:
        """Notes what nothing but a container that was made just now refers to, and what is in it.

        It counts references: from the container, from the loop, and from the call that counts.
        """
        containers: list[Any] = [reduced]
        while containers:
            container = containers.pop()
            for part in container.values() if isinstance(container, dict) else container:
                if sys.getrefcount(part) > _REFERENCES_IN_A_LOOP or issubclass(type(part), _ATOMS):
                    continue
                self.temporary[id(part)] = part
                if issubclass(type(part), _HOLDERS):
                    containers.append(part)


def _runs_code_when_made(cls: type) -> bool:
    """Returns whether a class of the notebook has a say where instances are made or looked up."""
    own = [base for base in cls.__mro__ if not is_importable(base)]
    return any(name in vars(base) for base in own for name in _CALLED_WHEN_MADE)


def _by_default(_: Any) -> Any:
    return NotImplemented


def _reduce_module(module: types.ModuleType) -> Any:
    if not is_importable_module(module):
        raise Refused(
            "is a module that was made at run time, so it cannot be imported elsewhere",
            "Put it into a file, or define what is in it in the notebook",
        )
    return importlib.import_module, (module.__name__,)


def _reduce_view(view: Any) -> Any:
    """Reduces `d.keys()` and the like as a view of the same dict."""
    (owner,) = gc.get_referents(view)
    kind = type(view).__name__.rpartition("_")[2]
    return make_view, (owner, kind)


def _reduce_cached_property(value: functools.cached_property[Any]) -> Any:
    """Leaves out the lock that it had before Python 3.12."""
    state = (value.attrname, value.__doc__)
    return functools.cached_property, (value.func,), state, None, None, set_cached_property


def set_cached_property(value: functools.cached_property[Any], state: tuple[Any, Any]) -> None:
    """Gives a cached property the name it caches under."""
    value.attrname, value.__doc__ = state


def make_lru_cache(function: Any, maxsize: int | None, typed: bool) -> Any:  # noqa: FBT001
    """Returns a function under an empty `lru_cache`."""
    return functools.lru_cache(maxsize=maxsize, typed=typed)(function)


def set_lru_cache(function: Any, state: tuple[dict[str, Any]]) -> None:
    """Gives a cached function its attributes."""
    (own,) = state
    function.__dict__.clear()
    function.__dict__.update(own)


_REDUCE_BY_BASE: Final[dict[type, Reduce]] = {
    type: reduce_class,
    types.ModuleType: _reduce_module,
    BaseException: reduce_exception,
}


def make_view(owner: dict[Any, Any], kind: str) -> Any:
    """Returns `owner.keys()`, `.values()` or `.items()`."""
    return getattr(owner, kind)()
