"""Loads what a kernel sent, in a home or in a later process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.boundary.binding import bound_meanwhile
from workbench.boundary.errors import BrokenTransfer
from workbench.boundary.memo import Reader, always_known
from workbench.boundary.parcel import Received, receive
from workbench.boundary.process_state import arrive
from workbench.boundary.submodules import import_submodules
from workbench.protocol.job_files import BUFFERS, INPUTS


class Temporary:
    """Stands for what was made only to be pickled: what became of it here has no other there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a kernel sent.

    Attributes:
        values: The names that crossed and what came under them.
        objects: All that came, by number.
        manifest: What else the kernel said.
        received: The files.
    """

    values: Mapping[str, Any]
    objects: list[Any]
    manifest: Mapping[str, Any]
    received: Received


def load_inputs(directory: Path, namespace: dict[str, Any], *, take_state: bool) -> Inputs:
    """Loads what a kernel sent; in the end nothing is bound.

    Args:
        directory: Where `Crossing.write` wrote.
        namespace: What the notebook's functions get as their globals.
        take_state: Whether this process's state becomes that of the kernel.

    Returns:
        What came.

    Raises:
        BrokenTransfer: The inputs cannot be read.
    """
    received = receive(directory / INPUTS, directory / BUFFERS)
    reader = Reader(received.body, always_known(namespace), received.buffers)
    state = reader.load()
    if take_state:
        arrive(state)
    import_submodules(received.manifest["submodules"])
    values: dict[str, Any] = {}
    with bound_meanwhile(namespace) as bind:
        for name in received.manifest["names"]:
            try:
                _, values[name] = reader.load()
            except Exception as problem:
                raise BrokenTransfer(
                    f"{name} cannot be made here: {type(problem).__name__}: {problem}",
                    next_step="Make it in the cell that uses it",
                ) from problem
            bind(name, values[name])
    objects = reader.numbered()
    assert len(objects) == received.manifest["objects"], "both sides number alike"
    for number in received.manifest["temporary"]:
        objects[number] = Temporary()
    return Inputs(values=values, objects=objects, manifest=received.manifest, received=received)
