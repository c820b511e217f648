"""Back in the kernel: `stage` loads a result, `Changes.commit` makes it so."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.boundary.binding import bound_meanwhile
from workbench.boundary.cell_error import CellError
from workbench.boundary.crossing import Crossing
from workbench.boundary.errors import BrokenTransfer, GoneError, RemoteError
from workbench.boundary.inputs import load_inputs
from workbench.boundary.memo import Reader, collection_paused
from workbench.boundary.own_code import Write, make, run_own_code
from workbench.boundary.parcel import receive
from workbench.boundary.process_state import give_back
from workbench.boundary.submodules import import_submodules
from workbench.protocol.job_files import RESULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """A result that is loaded, while the kernel is still as it was.

    Attributes:
        names: What the cell bound, in order.
        deleted: What it deleted.
        changed: Names whose value, or something in it, it changed in place.
        error: What it raised.
        not_returned: Names that were bound to what could not come back or cannot be made here, and
            why.
        lost_changes: Names in which a change in place could not come back, and why it could not.
        notes: What the user should be told.
    """

    names: Sequence[str]
    deleted: Sequence[str]
    changed: Sequence[str]
    error: CellError | None
    not_returned: Mapping[str, str]
    lost_changes: Mapping[str, str]
    notes: Sequence[str]
    _values: Mapping[str, Any]
    _writes: Sequence[Write]
    _state: Mapping[str, Any]
    _submodules: Sequence[str]

    def commit(self, namespace: dict[str, Any]) -> None:
        """Binds and deletes names, changes objects in place, and sets the process's state.

        Args:
            namespace: The notebook's names.

        Raises:
            BrokenTransfer: An object's own code refused a change: nothing was changed. Or a library
                did, which only a change of the same object here in the meantime can bring about:
                no name was bound, and objects before it are changed.
        """
        with bound_meanwhile(namespace) as bind:
            for name, value in self._values.items():
                bind(name, value)
            for write in run_own_code(self._writes):
                make(write, next_step="Some objects are changed already: make them anew")
        for name in self.deleted:
            namespace.pop(name, None)
        namespace.update(self._values)
        import_submodules(self._submodules)
        give_back(self._state)  # Last, for what a directory or a library allows is not ours.


def stage(crossing: Crossing, directory: Path) -> Changes:
    """Loads what came back for a crossing; nothing of the kernel is touched.

    Args:
        crossing: What this process sent.
        directory: The job's directory.

    Returns:
        What came back.

    Raises:
        BrokenTransfer: The result cannot be read, or a change in place cannot be made here.
    """
    return _load(directory, crossing.objects, crossing.namespace)


def load_result(directory: Path) -> Changes:
    """Loads what came back, in a process that did not send it, as after the kernel's restart.

    What was sent is made again, so that the result can refer to it. Names whose value was changed
    in place are bound too.

    Args:
        directory: The job's directory.

    Returns:
        What came back.

    Raises:
        BrokenTransfer: The inputs cannot be read or made here; or the result, as in `stage`.
    """
    namespace = vars(sys.modules["__main__"])
    inputs = load_inputs(directory, namespace, take_state=False)
    with bound_meanwhile(namespace) as bind:
        for name, value in inputs.values.items():
            bind(name, value)
        return _load(directory, inputs.objects, namespace, inputs.values)


@collection_paused()
def _load(
    directory: Path,
    objects: Sequence[Any],
    namespace: dict[str, Any],
    sent: Mapping[str, Any] | None = None,
) -> Changes:
    received = receive(directory / RESULT)
    manifest = received.manifest
    reader = Reader(received.body, objects, received.buffers)
    values: dict[str, Any] = {}
    not_made: dict[str, str] = {}
    with bound_meanwhile(namespace) as bind:
        for name in manifest["names"]:
            try:
                _, values[name] = reader.load()
            except Exception as problem:  # noqa: BLE001  (making objects runs the user's own code)
                not_made[name] = _why_not(problem)
                reader.pass_over()
            else:
                bind(name, values[name])
        with _making_changes(not_made):
            writes = [reader.load() for _ in range(manifest["changes"])]
            state = reader.load()
        error = _error(reader, manifest)
    if sent is not None:
        values = {name: sent[name] for name in manifest["changed"]} | values
    return Changes(
        names=list(values),
        deleted=manifest["deleted"],
        changed=manifest["changed"],
        error=error,
        not_returned=manifest["not_returned"] | not_made,
        lost_changes=manifest["lost_changes"],
        notes=manifest["notes"],
        _values=values,
        _writes=writes,
        _state=state,
        _submodules=manifest["submodules"],
    )


def _why_not(problem: Exception) -> str:
    if isinstance(problem, GoneError):
        return str(problem)
    return f"it cannot be made here: {type(problem).__name__}: {problem}"


@contextlib.contextmanager
def _making_changes(not_made: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        reasons = {**not_made, "a change in place": _why_not(problem)}
        raise BrokenTransfer(
            "; ".join(f"{what} could not come back: {why}" for what, why in reasons.items()),
            next_step="Nothing was changed; keep what the cell makes in plain values",
        ) from problem


def _error(reader: Reader, manifest: Mapping[str, Any]) -> CellError | None:
    if manifest["error"] is None:
        return None
    try:
        exception = reader.load()
    except Exception as problem:  # noqa: BLE001  (making an exception runs the user's own code)
        exception = RemoteError(manifest["error"])
        exception.add_note(f"It cannot be made here: {type(problem).__name__}: {problem}")
    return CellError(exception=exception, traceback_lines=manifest["traceback"])
