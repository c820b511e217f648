"""Back in the kernel: `stage` loads a result, `Changes.commit` makes it so."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.boundary.arrival import RESULT_NAME
from workbench.boundary.cell_error import CellError
from workbench.boundary.crossing import Crossing
from workbench.boundary.errors import BrokenTransfer, RemoteError
from workbench.boundary.inputs import load_inputs
from workbench.boundary.memo import Reader, collection_paused
from workbench.boundary.parcel import receive
from workbench.boundary.process_state import give_back

_Write = tuple[Callable[[Any, Any], None], Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """A result that is loaded, while the kernel is still as it was.

    Attributes:
        names: What the cell bound, in order.
        deleted: What it deleted.
        changed: Names whose value, or something in it, it changed in place.
        error: What it raised.
        not_returned: Names that could not come back, and why.
        notes: What the user should be told.
    """

    names: Sequence[str]
    deleted: Sequence[str]
    changed: Sequence[str]
    error: CellError | None
    not_returned: Mapping[str, str]
    notes: Sequence[str]
    _values: Mapping[str, Any]
    _writes: Sequence[_Write]
    _state: Mapping[str, Any]

    def commit(self, namespace: dict[str, Any]) -> None:
        """Binds and deletes names, changes objects in place, and sets the process's state.

        Args:
            namespace: The notebook's names.

        Raises:
            BrokenTransfer: An object's own code refused a change: no name was bound, and objects
                before it are changed.
        """
        for put, value, state in self._writes:
            try:
                put(value, state)
            except Exception as problem:
                raise BrokenTransfer(
                    f"a {type(value).__qualname__} refused what the cell made of it, and no name"
                    f" was bound: {type(problem).__name__}: {problem}",
                    next_step="Some objects are changed already: make them anew",
                ) from problem
        give_back(self._state)
        for name in self.deleted:
            namespace.pop(name, None)
        namespace.update(self._values)


def stage(crossing: Crossing, directory: Path) -> Changes:
    """Loads what came back for a crossing; nothing of the kernel is touched.

    Args:
        crossing: What this process sent.
        directory: The job's directory.

    Returns:
        What came back.

    Raises:
        BrokenTransfer: The result cannot be read or made here.
    """
    return _load(directory, crossing.objects)


def load_result(directory: Path) -> Changes:
    """Loads what came back, in a process that did not send it, as after the kernel's restart.

    What was sent is made again, so that the result can refer to it. Names whose value was changed
    in place are bound too.

    Args:
        directory: The job's directory.

    Returns:
        What came back.

    Raises:
        BrokenTransfer: Inputs or result cannot be read or made here.
    """
    inputs = load_inputs(directory, vars(sys.modules["__main__"]), take_state=False)
    return _load(directory, inputs.objects, inputs.values)


@collection_paused()
def _load(
    directory: Path, objects: Sequence[Any], sent: Mapping[str, Any] | None = None
) -> Changes:
    received = receive(directory / RESULT_NAME)
    manifest = received.manifest
    reader = Reader(received.body, objects, received.buffers)
    values = {}
    for name in manifest["names"]:
        with _making(name):
            _, values[name] = reader.load()
    with _making("a change in place"):
        writes = [reader.load() for _ in range(manifest["changes"])]
        state = reader.load()
    if sent is not None:
        values = {name: sent[name] for name in manifest["changed"]} | values
    return Changes(
        names=list(values),
        deleted=manifest["deleted"],
        changed=manifest["changed"],
        error=_error(reader, manifest["error"]),
        not_returned=manifest["not_returned"],
        notes=manifest["notes"],
        _values=values,
        _writes=writes,
        _state=state,
    )


@contextlib.contextmanager
def _making(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        raise BrokenTransfer(
            f"{what} came back but cannot be made here: {type(problem).__name__}: {problem}",
            next_step="Nothing was changed; keep what the cell makes in plain values",
        ) from problem


def _error(reader: Reader, description: str | None) -> CellError | None:
    try:
        loaded = reader.load()
    except Exception:  # noqa: BLE001  (making an exception runs the user's own code)
        return CellError(exception=RemoteError(description or ""))
    if loaded is None:
        return None
    exception, lines = loaded
    return CellError(exception=exception, traceback_lines=lines)
