"""One task or map of a running plan: what is known of it, and what it does in its turn."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from workbench.graphs.cell import Cell
from workbench.graphs.executable import VALUE, ExecutableNode, MapCode
from workbench.graphs.maps import COLLECTED, IN_PLACE, Collect
from workbench.graphs.run_crossing import laid_over
from workbench.graphs.run_events import Event, replay
from workbench.graphs.run_failures import first_in, give_tracebacks
from workbench.graphs.run_remote import Outcome


@dataclass(slots=True, kw_only=True)
class Known:
    """What is known of a task or map before its turn.

    Attributes:
        names: What it will bind.
        value: Of a bare expression.
        error: What it will raise.
        events: What it will print and warn of, before it raises.
        done: The values, up to the first failing item's.
        body: What a loop's body had bound when it ended or failed.
    """

    names: dict[str, Any] = field(default_factory=dict)
    value: Any = None
    error: BaseException | None = None
    events: list[Event] = field(default_factory=list)
    done: list[Any] = field(default_factory=list)
    body: dict[str, Any] = field(default_factory=dict)


class RunningNode:
    """A task or map, from what its workers answer to its commit.

    Args:
        code: The node and its code.
        cell: The cell.
        namespace: The home's names.
    """

    def __init__(self, code: ExecutableNode, cell: Cell, namespace: dict[str, Any]) -> None:
        self.node = code.node
        self.items: list[Any] = []
        self.known: Known | None = None
        self._code = code
        self._cell = cell
        self._namespace = namespace

    @property
    def is_map(self) -> bool:
        """Whether it has items."""
        return self._code.map is not None

    @property
    def fills_in_place(self) -> bool:
        """Whether it is done only when it is committed."""
        return self._code.map is not None and self._code.map.shape.collect in IN_PLACE

    def list_items(self) -> int:
        """List the items that a map has now, and return how many parts there are to compute.

        Raises:
            BaseException: What the user's code raises.
        """
        if self._code.map is None:
            return 1
        self.items = eval(self._code.map.items, self._namespace)  # noqa: S307  (the user's cell)
        return len(self.items)

    def worker_names(self) -> list[str]:
        """Return the names that a worker needs; `boundary.pack` adds what functions read."""
        if self._code.map is None:
            return list(self.node.reads)
        used = _global_names(self._code.map.item_function({}).__code__)
        return [name for name in self.node.reads if name in used]

    def settle(self, outcomes: list[Outcome]) -> None:
        """Make what is known of it from what its parts gave.

        Args:
            outcomes: In order, up to the first that failed.
        """
        known = Known()
        for outcome in outcomes:
            known.events += outcome.events
            known.done += outcome.values
            known.error = outcome.error
            known.body |= outcome.names
            if outcome.error is not None and outcome.frames:
                give_tracebacks(outcome.error, outcome.frames)
        self.known = known
        if self._code.map is None:
            self._settle_task(known)
        else:
            self._settle_map(self._code.map, known)

    def commit(self) -> Any:
        """Do what it does, as if it ran now, and return the value of a bare expression.

        Raises:
            BaseException: What the user's code raised.
        """
        known = self.known
        assert known is not None
        replay(known.events, self._namespace, self._cell.filename)
        if self._code.map is not None and self._code.map.shape.loop:
            self._commit_loop(self._code.map, known)
        self._namespace.update(known.names)
        if known.error is not None:
            self._raise(known.error)
        return known.value

    def _settle_task(self, known: Known) -> None:
        assert self._code.task is not None
        if known.error is None:
            (value,) = known.done
            if self._code.task.bind is None:
                known.value = value
            else:
                self._bind(self._code.task.bind, value, known)

    def _settle_map(self, code: MapCode, known: Known) -> None:
        if code.shape.loop:
            return
        try:
            collected = self._collected(code, known)
            if known.error is not None:
                return
            if code.finish is not None:
                with laid_over(self._namespace, {COLLECTED: collected}):
                    collected = eval(code.finish, self._namespace)  # noqa: S307  (as above)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  (the user's code raised it)
            known.error = error
            return
        if code.bind is None:
            known.value = collected
        else:
            self._bind(code.bind, collected, known)

    def _collected(self, code: MapCode, known: Known) -> Any:
        """Return the collection of the values, put together in order."""
        match code.shape.collect:
            case Collect.SET:
                made = set()
                for value in known.done:
                    made.add(value)
                return made
            case Collect.DICT:
                # The key comes before the value, so the failing item's key is looked at too.
                items = self.items[: len(known.done) + (known.error is not None)]
                keys = [self._key(code, item) for item in items]
                return dict(zip(keys, known.done, strict=known.error is None))
            case _:
                return known.done

    def _key(self, code: MapCode, item: Any) -> Any:
        assert code.key is not None
        names = {VALUE: item, **dict.fromkeys(code.shape.target_names)}
        with laid_over(self._namespace, names):
            exec(code.bind_item, self._namespace)  # noqa: S102  (the user's cell)
            return eval(code.key, self._namespace)  # noqa: S307  (as above)

    def _bind(self, code: Any, value: Any, known: Known) -> None:
        scratch = {VALUE: value}
        try:
            exec(code, scratch)  # noqa: S102  (it binds names and does nothing else)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            known.error = error
        for name in (VALUE, "__builtins__"):
            scratch.pop(name, None)
        known.names = scratch

    def _commit_loop(self, code: MapCode, known: Known) -> None:
        """Fill the container and leave the loop's names as the last round left them."""
        namespace = self._namespace
        container = code.shape.container
        assert container is not None
        for value, item in zip(known.done, self.items, strict=False):
            match code.shape.collect:
                case Collect.APPEND:
                    namespace[container].append(value)
                case Collect.ADD:
                    namespace[container] += value
                case _:
                    namespace[container][self._key(code, item)] = value
        rounds = len(known.done) + (known.error is not None)
        if rounds:
            namespace[VALUE] = self.items[rounds - 1]
            try:
                exec(code.bind_item, namespace)  # noqa: S102  (it binds the loop's targets)
            finally:
                del namespace[VALUE]
        namespace.update(known.body)

    def _raise(self, error: BaseException) -> None:
        """Raise in the cell's own frame, as the statement in its place would."""
        frames = first_in(error.__traceback__, self._cell.filename)
        if frames is not None and frames.tb_frame.f_code.co_name == "<module>":
            raise error
        place = ast.Raise(exc=ast.Name(VALUE, ast.Load()), cause=None)
        located = ast.fix_missing_locations(ast.copy_location(place, self._code.statement.node))
        exec(self._cell.compile(located), {VALUE: error})  # noqa: S102  (it raises)


def _global_names(code: CodeType) -> set[str]:
    """Return the names that code may look up as globals, and attributes among them."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _global_names(constant)
    return found
