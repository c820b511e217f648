"""From the kernel to the home: `pack`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import MethodType
from typing import Any, Final

from workbench.boundary.binding import code_first
from workbench.boundary.errors import CannotCross, Refused
from workbench.boundary.explain import path_to
from workbench.boundary.labels import Label, Labels
from workbench.boundary.libraries import Run, new_memory
from workbench.boundary.memo import always_known, collection_paused
from workbench.boundary.parcel import Parcel
from workbench.boundary.process_state import capture
from workbench.boundary.submodules import named_submodules
from workbench.boundary.writer import Writer
from workbench.core.spelling import spell_bytes
from workbench.protocol.job_files import BUFFERS, INPUTS

_WORTH_A_NOTE_BYTES: Final = 256 << 20
_NAMED_WHEN_TOO_LARGE: Final = 3
_WITHOUT_ADVICE: Final = "Make it in the cell that uses it, or delete the name"
_SHELL_NAMES: Final = frozenset({"exit", "get_ipython", "quit"})
_SHELL_PACKAGES: Final = ("IPython", "ipykernel")
_MODULE_ATTRIBUTES: Final = frozenset(
    {"__builtins__", "__builtin__", "__doc__", "__loader__", "__name__", "__package__", "__spec__"}
)


class Crossing:
    """What a kernel sends to a home, and which of its objects went under which number.

    Attributes:
        names: The names that cross, in order.
        largest: Names and their sizes in bytes, largest first; what two names share counts once.
        size_bytes: The size of all.
        notes: What the user should be told.
    """

    def __init__(
        self,
        parcel: Parcel,
        *,
        namespace: dict[str, Any],
        objects: list[Any],
        sizes: dict[str, int],
        notes: list[str],
    ) -> None:
        self._parcel: Parcel | None = parcel
        self.namespace = namespace
        self.objects = objects
        self._labels = Labels(objects)
        self.names = list(sizes)
        self.largest = sorted(sizes.items(), key=lambda item: -item[1])
        self.size_bytes = sum(sizes.values())
        self.notes = notes + [
            f"{name} is {spell_bytes(size)}: it is written to disk and read again"
            for name, size in self.largest
            if size >= _WORTH_A_NOTE_BYTES
        ]

    def write(self, directory: Path) -> None:
        """Writes `inputs.pickle` and `buffers.bin`, readable by their owner alone; once.

        Args:
            directory: The job's directory.
        """
        assert self._parcel is not None, "a crossing is written once"
        self._parcel.write(directory / INPUTS, directory / BUFFERS)
        self._parcel = None

    def name_of(self, number: int) -> str | None:
        """Returns the name through which an object was met first; None for none."""
        return self._labels.name_of(number)


@collection_paused()
def pack(
    namespace: dict[str, Any],
    names: Iterable[str],
    *,
    limit_bytes: int | None = None,
    attributes: Iterable[str] = (),
) -> Crossing:
    """Pickles the names that a cell reads, and those that the notebook's functions in them read.

    Args:
        namespace: The notebook's names; nothing is changed.
        names: What the cell reads. Names that are not in `namespace` are left out.
        limit_bytes: The most that may cross; None for any amount.
        attributes: What the cell calls things of modules, see `attributes_in`: submodules that it
            names so are imported on the other side.

    Returns:
        What crosses.

    Raises:
        CannotCross: A name cannot cross, or all together are too large.
    """
    known = always_known(namespace)
    names = list(names)
    run = Run(outbound=True, memory=new_memory())
    writer, sizes = _dump_all(run, known, namespace, names, limit_bytes)
    if writer.runs_code:
        names = code_first(sizes, namespace, writer.functions.reads)
        if names != list(sizes):
            run = Run(outbound=True, memory=new_memory())
            writer, sizes = _dump_all(run, known, namespace, names, limit_bytes)
    objects = writer.numbered()
    if run.memory is not None and run.memory.plan(objects, ()):
        writer, sizes = _dump_all(run, known, namespace, names, limit_bytes)
        objects = writer.numbered()
    loose = run.memory.loose if run.memory else {}
    attributes = {*attributes, *writer.functions.attributes}
    manifest = {
        "names": list(sizes),
        "attributes": list(attributes),
        "submodules": named_submodules((namespace[name] for name in sizes), attributes),
        "binds": list(writer.functions.binds),
        "own": len(known),
        "objects": len(objects),
        "temporary": [number for number, one in enumerate(objects) if id(one) in writer.temporary],
        "loose": [number for number, one in enumerate(objects) if id(one) in loose],
    }
    return Crossing(
        Parcel(manifest=manifest, body=writer.body(), buffers=writer.buffers),
        namespace=namespace,
        objects=objects,
        sizes=sizes,
        notes=list(run.notes),
    )


def _dump_all(
    run: Run,
    known: list[Any],
    namespace: dict[str, Any],
    names: Iterable[str],
    limit_bytes: int | None,
) -> tuple[Writer, dict[str, int]]:
    writer = Writer(namespace, known, run)
    writer.dump(capture())
    return writer, _dump_names(writer, namespace, names, limit_bytes)


def _dump_names(
    writer: Writer, namespace: dict[str, Any], names: Iterable[str], limit_bytes: int | None
) -> dict[str, int]:
    """Writes the names and, until there are no more, those that functions in them read.

    Returns:
        The names that were written and their sizes, in order.
    """
    wanted = dict.fromkeys(names)
    sizes: dict[str, int] = {}
    done: set[str] = set()
    while todo := [name for name in wanted if name not in done]:
        done.update(todo)
        for name in todo:
            if name not in namespace or _is_the_shells(name, namespace[name]):
                continue
            before = writer.size_bytes()
            _dump(writer, name, namespace[name])
            sizes[name] = writer.size_bytes() - before
            if limit_bytes is not None and writer.size_bytes() > limit_bytes:
                raise _too_large(sizes, limit_bytes)
        wanted.update(writer.functions.reads)
    return sizes


def _is_the_shells(name: str, value: Any) -> bool:
    """Returns whether a name is one that every home has of its own."""
    owner = value.__self__ if type(value) is MethodType else value
    package = type(owner).__module__.partition(".")[0]
    is_own = name in _SHELL_NAMES and package in _SHELL_PACKAGES
    return is_own or name in _MODULE_ATTRIBUTES


def _dump(writer: Writer, name: str, value: Any) -> None:
    try:
        writer.dump((Label(name), value))
    except Refused as refused:
        raise _cannot_cross(name, value, writer.reached, refused.why, refused.next_step) from None
    except Exception as problem:
        why = f"cannot be pickled: {problem}"
        raise _cannot_cross(name, value, writer.reached, why, _WITHOUT_ADVICE) from problem


def _cannot_cross(name: str, value: Any, culprit: Any, why: str, next_step: str) -> CannotCross:
    path = path_to(culprit, value)
    cls = type(culprit)
    where = f"{name}{path}" if path is not None else f"something in {name}"
    return CannotCross(
        f"{where} ({cls.__module__}.{cls.__qualname__}) {why}", next_step=next_step, name=name
    )


def _too_large(sizes: dict[str, int], limit_bytes: int) -> CannotCross:
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:_NAMED_WHEN_TOO_LARGE]
    spelled = ", ".join(f"{name} {spell_bytes(size)}" for name, size in largest)
    return CannotCross(
        f"what the cell reads is {spell_bytes(sum(sizes.values()))} or more, the limit is"
        f" {spell_bytes(limit_bytes)}; largest: {spelled}",
        next_step="Load the data in the cell itself, or pass on only the part that it needs",
        name=largest[0][0],
    )
