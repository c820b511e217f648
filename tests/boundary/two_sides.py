"""Runs a notebook twice: in order in one namespace, and with its last cell in another process."""

import ast
import contextlib
import json
import subprocess
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401  (so that it is loaded before the process's state is looked at)

from tests.boundary.likeness import difference
from workbench.boundary import Changes, Crossing, attributes_in, pack, stage
from workbench.boundary.process_state import arrive, capture, changed_since


class FarSide:
    """A process that plays the home."""

    def __init__(self, *libraries: str) -> None:
        program = Path(__file__).with_name("far_side.py")
        self._process = subprocess.Popen(
            [sys.executable, program, *libraries],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, directory: Path, cell: str, *, name_nothing: bool = False) -> None:
        """Runs a cell; with `name_nothing` the home does not say what it bound."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"directory": str(directory), "cell": cell, "name_nothing": name_nothing}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        problem = json.loads(self._process.stdout.readline())
        assert not problem, problem

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@dataclass
class World:
    """A notebook: its `__main__`, its names, and every object that a name had before the cell."""

    main: types.ModuleType
    held: dict[str, Any]
    error: BaseException | None = None

    @property
    def names(self) -> dict[str, Any]:
        return vars(self.main)

    def visible(self) -> dict[str, Any]:
        """Returns the names in one order: a name that was deleted and bound again keeps its place."""
        return {name: value for name, value in sorted(self.names.items()) if name[:2] != "__"}

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        before = sys.modules["__main__"]
        sys.modules["__main__"] = self.main
        try:
            yield
        finally:
            sys.modules["__main__"] = before

    def execute(self, code: str) -> None:
        with self.active():
            try:
                for statement in ast.parse(code).body:
                    exec(compile(ast.Module([statement], []), "<cell>", "exec"), self.names)
            except Exception as error:  # noqa: BLE001  (compared with the other world's)
                self.error = error

    def hold(self) -> None:
        self.held = self.visible()


@dataclass
class Notebook:
    """A notebook whose last cell runs elsewhere."""

    far_side: FarSide
    directory: Path
    world: World
    crossing: Crossing | None = None

    def start(self, code: str) -> None:
        self.world.execute(code)
        assert self.world.error is None, self.world.error
        self.world.hold()

    def cross(
        self, cell: str, names: Iterable[str] | None = None, *, name_nothing: bool = False
    ) -> Changes:
        """Runs a cell elsewhere, commits what comes back, and returns it."""
        with self.world.active():
            reads = names_in(cell) if names is None else names
            self.crossing = pack(self.world.names, reads, attributes=attributes_in(ast.parse(cell)))
            self.crossing.write(self.directory)
            self.far_side.run(self.directory, cell, name_nothing=name_nothing)
            changes = stage(self.crossing, self.directory)
            changes.commit(self.world.names)
        if changes.error is not None:
            self.world.error = changes.error.as_exception()
        return changes


def new_world() -> World:
    return World(types.ModuleType("__main__"), {})


def names_in(cell: str) -> list[str]:
    found = (node.id for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.Name))
    return list(dict.fromkeys(found))


def check_as_in_order(
    notebook: Notebook, before: str, cell: str, *, lost: str = "", unsteady: tuple[str, ...] = ()
) -> Changes:
    """Asserts that a cell run elsewhere leaves what it would have left here.

    Args:
        notebook: A new one.
        before: What the kernel has run.
        cell: What runs in the home.
        lost: A name that cannot come back.
        unsteady: Parts of the process's state that the first import of a library changes.
    """
    state = capture()
    in_order = new_world()
    in_order.execute(before)
    assert in_order.error is None, in_order.error
    in_order.hold()
    in_order.execute(cell)
    state_in_order = capture()
    arrive(state)
    notebook.start(before)
    changes = notebook.cross(cell)
    assert [*changes.not_returned, *changes.lost_changes] == ([lost] if lost else [])
    for world in (in_order, notebook.world):
        world.names.pop(lost, None)
        world.names.pop("__builtins__", None)
    found = difference(
        (in_order.visible(), in_order.held, in_order.error),
        (notebook.world.visible(), notebook.world.held, notebook.world.error),
    )
    assert not found, found
    assert [part for part in changed_since(state_in_order) if part not in unsteady] == []
    arrive(state)
    return changes
