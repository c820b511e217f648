"""In the home: `unpack`, and `pack_back` after the cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from workbench.boundary.cell_error import CellError, describe
from workbench.boundary.compare import Change, Watch
from workbench.boundary.errors import Refused
from workbench.boundary.inputs import Inputs, load_inputs
from workbench.boundary.labels import Label, Labels
from workbench.boundary.libraries import Run, new_memory
from workbench.boundary.memo import collection_paused
from workbench.boundary.parcel import Parcel
from workbench.boundary.process_state import capture, changed_since
from workbench.boundary.writer import Writer

RESULT_NAME: Final = "result.pickle"
_PARTED: Final = (
    "a new view of an array with wide gaps between its items came back with memory of its own"
)
_BEING_WRITTEN: Final = "result.pickle.tmp"


@collection_paused()
def unpack(directory: Path, namespace: dict[str, Any]) -> Arrival:
    """Loads what a kernel sent, and makes this process's state that of the kernel.

    Args:
        directory: Where `Crossing.write` wrote.
        namespace: The names of the home; those that crossed are bound in it.

    Returns:
        What came, to be packed back after the cell.

    Raises:
        BrokenTransfer: The inputs cannot be read.
    """
    inputs = load_inputs(directory, namespace, take_state=True)
    namespace.update(inputs.values)
    return Arrival(inputs, namespace)


@dataclass(slots=True, kw_only=True)
class _Answer:
    """What goes back, less what turned out to be unable to."""

    bound: dict[str, Any]
    deleted: list[str]
    changes: list[Change]
    error: CellError | None
    not_returned: dict[str, str] = field(default_factory=dict)


class Arrival:
    """What came from a kernel, and what this process was then.

    Args:
        inputs: What came.
        namespace: The names of the home.
    """

    def __init__(self, inputs: Inputs, namespace: dict[str, Any]) -> None:
        self._inputs = inputs
        self._namespace = namespace
        self._labels = Labels(inputs.objects)
        self._watch = Watch(inputs.objects, inputs.manifest["own"], inputs.received)
        self._state = capture()

    @collection_paused()
    def pack_back(
        self,
        directory: Path,
        *,
        names: Iterable[str],
        deleted: Iterable[str],
        error: CellError | BaseException | None = None,
    ) -> None:
        """Writes `result.pickle`: all of it or nothing.

        Names that crossed and were bound anew or deleted, by whatever code, go back unasked.

        Args:
            directory: The job's directory.
            names: What the cell bound.
            deleted: What the cell deleted.
            error: What the cell raised; a bare exception comes back without its traceback.
        """
        bound, gone = self._bindings(names, deleted)
        if isinstance(error, BaseException):
            error = CellError(exception=error)
        answer = _Answer(
            bound=bound, deleted=gone, changes=list(self._watch.changes()), error=error
        )
        self._pack(answer).write(directory / _BEING_WRITTEN)
        (directory / _BEING_WRITTEN).rename(directory / RESULT_NAME)

    def _bindings(
        self, names: Iterable[str], deleted: Iterable[str]
    ) -> tuple[dict[str, Any], list[str]]:
        now = self._namespace
        values = self._inputs.values
        again = [name for name in values if name not in now or now[name] is not values[name]]
        candidates = [*names, *again, *self._inputs.manifest["binds"]]
        bound = {name: now[name] for name in dict.fromkeys(candidates) if name in now}
        return bound, [name for name in dict.fromkeys([*deleted, *again]) if name not in now]

    def _pack(self, answer: _Answer) -> Parcel:
        """Returns the answer; takes out of it what cannot go.

        What a failed part has put into the memo the reader will not have, so all starts anew; so
        it does where arrays turn out to share memory.
        """
        objects = self._inputs.objects
        run = self._run()
        while True:
            writer = Writer(self._namespace, objects, run)
            if not self._dump_all(writer, answer):
                run = self._run()
            elif run.memory is None or not run.memory.plan(writer.numbered(), objects):
                return self._parcel(writer, answer, run)
            else:
                writer = Writer(self._namespace, objects, run)
                whole = self._dump_all(writer, answer)
                assert whole, "what went once goes again"
                return self._parcel(writer, answer, run)

    def _run(self) -> Run:
        memory = new_memory()
        if memory is not None:
            loose = [self._inputs.objects[number] for number in self._inputs.manifest["loose"]]
            memory.loose.update((id(one), one) for one in loose)
        return Run(outbound=False, memory=memory)

    def _dump_all(self, writer: Writer, answer: _Answer) -> bool:
        """Returns whether all went; if not, what did not was taken out of the answer."""
        for name, value in answer.bound.items():
            if reason := _dump(writer, (Label(name), value)):
                answer.not_returned[name] = reason
                del answer.bound[name]
                return False
        for change in answer.changes:
            if reason := _dump_change(writer, change):
                name = self._labels.name_of(change.number) or "an object"
                answer.not_returned[name] = f"its change cannot come back: {reason}"
                answer.changes.remove(change)
                return False
        if reason := _dump(writer, changed_since(self._state)):
            raise AssertionError(reason)
        error = answer.error
        if _dump(writer, error and (error.exception, list(error.traceback_lines))):
            assert error is not None
            answer.error = error.as_remote()
            return False
        return True

    def _parcel(self, writer: Writer, answer: _Answer, run: Run) -> Parcel:
        error = answer.error
        if run.memory is not None and run.memory.parted:
            run.notes[_PARTED] = None
        changed = {id(change.value) for change in answer.changes}
        first_met = {self._labels.name_of(change.number) for change in answer.changes}
        values = self._inputs.values
        manifest = {
            "names": list(answer.bound),
            "deleted": answer.deleted,
            "changed": [
                name
                for name, value in values.items()
                if name in first_met or not changed.isdisjoint(map(id, _itself(value)))
            ],
            "changes": len(answer.changes),
            "error": describe(error.exception) if error else None,
            "not_returned": answer.not_returned,
            "notes": list(run.notes),
        }
        return Parcel(manifest=manifest, body=writer.body(), buffers=writer.buffers)


def _itself(value: Any) -> Iterator[Any]:
    """Yields an object and its attributes, where a change of it is noted."""
    yield value
    if hasattr(value, "__dict__"):
        yield value.__dict__


def _dump_change(writer: Writer, change: Change) -> str:
    if change.put is None:
        return f"{type(change.value).__qualname__} {change.state.why}. {change.state.next_step}"
    return _dump(writer, (change.put, change.value, change.state))


def _dump(writer: Writer, thing: Any) -> str:
    """Writes one stream; returns why it could not, empty where it could."""
    try:
        writer.dump(thing)
    except Refused as refused:
        return f"{type(writer.reached).__qualname__} {refused.why}. {refused.next_step}"
    except Exception as problem:  # noqa: BLE001  (pickling runs the user's own code)
        return f"{type(writer.reached).__qualname__} cannot be pickled: {problem}"
    return ""
