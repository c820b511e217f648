"""What the home gives to its workers: one crossing for tasks that become ready together.

A worker loads it once, computes any number of tasks over it, and answers in the memo of the same
crossing: what came from the home comes back as the very same object, see `boundary.memo`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from workbench.boundary import Crossing, pack
from workbench.boundary.inputs import Inputs, load_inputs
from workbench.boundary.libraries import Run, new_memory
from workbench.boundary.memo import Reader
from workbench.boundary.writer import Writer
from workbench.graphs.run_files import RunFiles

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a worker sends back.

    Attributes:
        worker: Its name.
        start_unix_s: When it began, and when it ended.
        body: A pickle in the memo of the crossing, and the memory that it refers to.
    """

    worker: str
    start_unix_s: float
    end_unix_s: float
    body: bytes
    buffers: list[bytes]


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
        crossing: What was packed.
    """

    def __init__(self, number: int, crossing: Crossing) -> None:
        self.number = number
        self._objects = crossing.objects

    def load(self, answer: Answer) -> Any:
        """Return what a worker answered; it may run the user's own code."""
        buffers = [memoryview(bytearray(one)) for one in answer.buffers]
        return Reader(answer.body, self._objects, buffers).load()


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
    return Sent(number, crossing)


class Received:
    """A worker's side of one crossing.

    Args:
        directory: Where the home wrote it.
    """

    def __init__(self, directory: Path) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self._inputs: Inputs = load_inputs(directory, self.namespace, take_state=True)
        self.namespace.update(self._inputs.values)

    def dump(self, value: Any) -> tuple[bytes, list[bytes]]:
        """Return `value` as an answer's body and buffers.

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
        return writer.body(), [bytes(one.raw()) for one in writer.buffers]
