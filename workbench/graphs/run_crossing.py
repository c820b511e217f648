"""What the home gives to its workers: one crossing for tasks that become ready together.

A worker loads it once, computes any number of tasks over it, and answers in the memo of the same
crossing: what came from the home comes back as the very same object, see `boundary.memo`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from workbench.boundary import Crossing, pack
from workbench.boundary.inputs import Inputs, load_inputs
from workbench.boundary.libraries import Run, new_memory
from workbench.boundary.memo import Reader
from workbench.boundary.parcel import Parcel, receive
from workbench.boundary.writer import Writer
from workbench.graphs.run_files import RunFiles

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a worker made.

    Attributes:
        worker: Its name.
        start_unix_s: When it began.
        end_unix_s: When it ended.
        value: The answer.
    """

    worker: str
    start_unix_s: float
    end_unix_s: float
    value: Any


@contextlib.contextmanager
def laid_over(namespace: dict[str, Any], values: Mapping[str, Any]) -> Iterator[None]:
    """Bind names for a while, and then have the namespace as it was."""
    before = {name: namespace.get(name, _ABSENT) for name in values}
    namespace.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _ABSENT:
                namespace.pop(name, None)
            else:
                namespace[name] = value


class Sent:
    """The home's side of one crossing.

    Args:
        number: Which one of the job's.
        directory: Where it was written; the answers come there too.
        crossing: What was packed.
    """

    def __init__(self, number: int, directory: Path, crossing: Crossing) -> None:
        self.number = number
        self._directory = directory
        self._objects = crossing.objects

    def load(self, mark: str) -> Answer:
        """Return what a worker answered; it may run the user's own code.

        Arrays of the answer stay mapped from its file, also when that is removed.
        """
        received = receive(*_answer_paths(self._directory, mark))
        value = Reader(received.body, self._objects, received.buffers).load()
        times = {name: received.manifest[name] for name in ("start_unix_s", "end_unix_s")}
        return Answer(worker=received.manifest["worker"], value=value, **times)


def send(
    files: RunFiles,
    number: int,
    namespace: dict[str, Any],
    names: Iterable[str],
    values: Mapping[str, Any],
) -> Sent:
    """Write a crossing for the workers.

    Args:
        files: Of the job.
        number: Which crossing it is.
        namespace: The notebook's names.
        names: What the tasks read, and any of `values`.
        values: Names that have another value for these tasks.

    Raises:
        CannotCross: Something in a name cannot.
    """
    directory = files.crossing(number)
    directory.mkdir(mode=0o700, parents=True)
    with laid_over(namespace, values):
        crossing = pack(namespace, names)
    crossing.write(directory)
    return Sent(number, directory, crossing)


class Received:
    """A worker's side of one crossing.

    Args:
        directory: Where the home wrote it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self._inputs: Inputs = load_inputs(directory, self.namespace, take_state=True)
        self.namespace.update(self._inputs.values)

    def answer(self, mark: str, value: Any, worker: str, start_unix_s: float) -> None:
        """Write an answer for the home.

        Raises:
            Exception: It cannot cross, whatever the reason.
        """
        objects = self._inputs.objects
        memory = new_memory()
        if memory is not None:
            loose = [objects[number] for number in self._inputs.manifest["loose"]]
            memory.loose.update((id(one), one) for one in loose)
        run = Run(outbound=False, memory=memory)
        writer = Writer(self.namespace, objects, run)
        writer.dump(value)
        if memory is not None and memory.plan(writer.numbered(), objects):
            writer = Writer(self.namespace, objects, run)
            writer.dump(value)
        manifest = {"worker": worker, "start_unix_s": start_unix_s, "end_unix_s": time.time()}
        parcel = Parcel(manifest=manifest, body=writer.body(), buffers=writer.buffers)
        parcel.write(*_answer_paths(self._directory, mark))


def _answer_paths(directory: Path, mark: str) -> tuple[Path, Path]:
    return directory / f"{mark}.pickle", directory / f"{mark}.bin"
