"""In the home: `unpack`, and `pack_back` after the cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from workbench.boundary.binding import code_first
from workbench.boundary.cell_error import CellError, describe
from workbench.boundary.compare import Change, Watch
from workbench.boundary.errors import Refused, RemoteError
from workbench.boundary.inputs import Inputs, load_inputs
from workbench.boundary.labels import Label, Labels
from workbench.boundary.libraries import Run, new_memory
from workbench.boundary.memo import collection_paused
from workbench.boundary.parcel import Parcel
from workbench.boundary.paring import Pared, Paring
from workbench.boundary.process_state import capture, changed_since
from workbench.boundary.submodules import named_submodules
from workbench.boundary.writer import Writer
from workbench.protocol.job_files import RESULT

_PARTED: Final = (
    "a new view of an array with wide gaps between its items came back with memory of its own"
)
_BEING_WRITTEN: Final = f"{RESULT}.tmp"
_MOST_PARED_TIMES: Final = 2


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
    """What goes back, less what turned out to be unable to.

    Attributes:
        raised: What is pickled for the exception: itself, or what can cross of it.
        pared_times: How often what cannot cross was taken out of it.
    """

    bound: dict[str, Any]
    deleted: list[str]
    changes: list[Change]
    error: CellError | None
    raised: BaseException | Pared | None
    traceback_lines: Sequence[str]
    pared_times: int = 0
    not_returned: dict[str, str] = field(default_factory=dict)
    lost_changes: dict[str, str] = field(default_factory=dict)


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
            bound=bound,
            deleted=gone,
            changes=list(self._watch.changes()),
            error=error,
            raised=error.exception if error else None,
            traceback_lines=error.traceback_lines if error else (),
        )
        self._pack(answer).write(directory / _BEING_WRITTEN)
        (directory / _BEING_WRITTEN).rename(directory / RESULT)

    def _bindings(
        self, names: Iterable[str], deleted: Iterable[str]
    ) -> tuple[dict[str, Any], list[str]]:
        now = self._namespace
        values = self._inputs.values
        again = [name for name in values if name not in now or now[name] is not values[name]]
        candidates = [*names, *again, *self._inputs.manifest["binds"]]
        there = [name for name in dict.fromkeys(candidates) if name in now]
        bound = {name: now[name] for name in code_first(there, now)}
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
                answer.lost_changes[name] = reason
                answer.changes.remove(change)
                return False
        if reason := _dump(writer, changed_since(self._state)):
            raise AssertionError(reason)
        if _dump(writer, answer.raised):
            self._pare(answer)
            return False
        return True

    def _pare(self, answer: _Answer) -> None:
        """Takes out of the exception what cannot go, and says so; more of it the next time."""
        error = answer.error
        assert error is not None, "None goes"
        answer.pared_times += 1
        if answer.pared_times > _MOST_PARED_TIMES:
            answer.raised = RemoteError(describe(error.exception))
            answer.traceback_lines = error.traceback_lines
            return
        paring = Paring(_Trial(self._writer).why_not, keeps_links=answer.pared_times == 1)
        try:
            answer.raised = paring.pare(error.exception)
        except Exception:  # noqa: BLE001  (it runs the user's own code, or recurses too deeply)
            self._pare(answer)
            return
        if error.traceback_lines:  # They are shown as they are, and these notes are new.
            answer.traceback_lines = [*error.traceback_lines, *(f"\n{one}" for one in paring.notes)]

    def _writer(self) -> Writer:
        return Writer(self._namespace, self._inputs.objects, self._run())

    def _parcel(self, writer: Writer, answer: _Answer, run: Run) -> Parcel:
        error = answer.error
        if run.memory is not None and run.memory.parted:
            run.notes[_PARTED] = None
        changed = {id(change.value) for change in answer.changes}
        first_met = {self._labels.name_of(change.number) for change in answer.changes}
        values = self._inputs.values
        attributes = {*self._inputs.manifest["attributes"], *writer.functions.attributes}
        manifest = {
            "names": list(answer.bound),
            "submodules": named_submodules([*values.values(), *answer.bound.values()], attributes),
            "deleted": answer.deleted,
            "changed": [
                name
                for name, value in values.items()
                if name in first_met or not changed.isdisjoint(map(id, _itself(value)))
            ],
            "changes": len(answer.changes),
            "error": describe(error.exception) if error else None,
            "traceback": list(answer.traceback_lines),
            "not_returned": answer.not_returned,
            "lost_changes": answer.lost_changes,
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
    """Writes one stream; returns why it could not and what to do, empty where it could."""
    return ". ".join(filter(None, _problem(writer, thing)))


def _problem(writer: Writer, thing: Any) -> tuple[str, str]:
    """Writes one stream; returns why it could not, and what to do."""
    try:
        writer.dump(thing)
    except Refused as refused:
        return f"{type(writer.reached).__qualname__} {refused.why}", refused.next_step
    except Exception as problem:  # noqa: BLE001  (pickling runs the user's own code)
        return f"{type(writer.reached).__qualname__} cannot be pickled: {problem}", ""
    return "", ""


class _Trial:
    """Tells what could be written, by writing it somewhere else.

    Args:
        new_writer: Makes a writer. What one has failed at is in its memo, so then another follows.
    """

    def __init__(self, new_writer: Callable[[], Writer]) -> None:
        self._new_writer = new_writer
        self._writer = new_writer()

    def why_not(self, thing: Any) -> str:
        """Returns why a thing cannot go; empty where it can."""
        why, _ = _problem(self._writer, thing)
        if why:
            self._writer = self._new_writer()
        return why
