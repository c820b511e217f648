"""In a worker: compute a task, or some items of a map, over a crossing."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

import msgspec

from workbench.graphs.cell import parse_spec
from workbench.graphs.executable import ExecutableNode, ExecutablePlan, MapCode, executable
from workbench.graphs.maps import Collect
from workbench.graphs.run_crossing import Received
from workbench.graphs.run_events import Event, recorded
from workbench.graphs.run_failures import CarriedFrame, cut_to, tracebacks
from workbench.graphs.run_files import RunFiles
from workbench.protocol.job_files import read_spec
from workbench.protocol.plan import Plan

ITEMS: Final = "__items_{}__"
"""In a crossing: the list of items of the map with this id."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What became of a task, or of the items `start` up to `stop` of a map.

    Attributes:
        values: One of a task; of a map, one for each item that did not fail, up to the first that
            did.
        names: What the body of a loop bound for the last of these values.
        error: What the next item raised, or the task.
        frames: Its tracebacks, see `run_failures.py`.
        events: What it printed and warned of.
    """

    values: list[Any] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    error: BaseException | None = None
    frames: list[list[CarriedFrame]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


def load_plan(job: Path) -> ExecutablePlan:
    """Return the plan of a job, with the code of its cell."""
    spec = read_spec(job)
    return executable(msgspec.convert(spec.plan, Plan), parse_spec(spec))


def work(job: str, crossing: int, oldest: int, node: int, start: int, stop: int, mark: str) -> None:
    """Compute and answer; what the user's code raises is part of the answer.

    The answer goes through a file: Dask would copy it several times, and connect first.

    Args:
        job: The job's directory.
        crossing: The one whose names it reads.
        oldest: Crossings before it are not asked for again.
        node: Which statement of the plan.
        start: The first item, of a map.
        stop: The item after the last, of a map.
        mark: Names this very attempt: it stands in the worker's file while it runs.

    Raises:
        Exception: The answer cannot cross, or the crossing cannot be loaded.
    """
    from workbench.graphs.dask_edge import current_worker

    began = time.time()
    worker = current_worker()
    running = RunFiles(Path(job)).running(worker)
    running.write_text(mark, encoding="ascii")
    site = _site(job)
    received = site.received(crossing, oldest)
    outcome = compute(site.plan, node, received.namespace, start, stop)
    received.answer(mark, outcome, worker, began)
    running.write_text("", encoding="ascii")


class _Site:
    def __init__(self, job: Path) -> None:
        self.plan = load_plan(job)
        self._files = RunFiles(job)
        self._received: dict[int, Received] = {}

    def received(self, number: int, oldest: int) -> Received:
        for past in [one for one in self._received if one < oldest]:
            del self._received[past]
        if number not in self._received:
            self._received[number] = Received(self._files.crossing(number))
        return self._received[number]


@functools.cache
def _site(job: str) -> _Site:
    return _Site(Path(job))


def compute(
    plan: ExecutablePlan, number: int, namespace: dict[str, Any], start: int, stop: int
) -> Outcome:
    """Compute a task, or items of a map, over names that are there."""
    node = plan.nodes[number]
    outcome = Outcome()
    try:
        with recorded(outcome.events):
            if node.map is None:
                outcome.values.append(_value(node, namespace))
            else:
                _values(node.map, namespace, namespace[ITEMS.format(number)][start:stop], outcome)
    except BaseException as error:  # noqa: BLE001  (whatever the user's code raises is its result)
        cut_to(error, plan.cell.filename)
        outcome.error = error
        outcome.frames = tracebacks(error)
    return outcome


def _value(node: ExecutableNode, namespace: dict[str, Any]) -> Any:
    assert node.task is not None
    return eval(node.task.expression, namespace)  # noqa: S307  (the user's cell)


def _values(code: MapCode, namespace: dict[str, Any], items: list[Any], outcome: Outcome) -> None:
    function = _named_as_in_order(code, code.item_function(namespace))
    try:
        for item in items:
            value, outcome.names = function(item)
            outcome.values.append(value)
    except BaseException as error:
        outcome.names |= _bound_before(error, function.__code__, code.shape.body_names)
        raise


def _bound_before(error: BaseException, code: CodeType, names: tuple[str, ...]) -> dict[str, Any]:
    """Return what the failing round had bound of these names."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code is not code:
        frames = frames.tb_next
    found = {} if frames is None else frames.tb_frame.f_locals
    return {name: found[name] for name in names if name in found}


def _named_as_in_order(
    code: MapCode, function: Callable[[Any], tuple[Any, dict[str, Any]]]
) -> FunctionType:
    """Have the item's frame carry the name that it has in order."""
    assert isinstance(function, FunctionType)
    comprehensions = {Collect.SET: "<setcomp>", Collect.DICT: "<dictcomp>"}
    name = "<module>" if code.shape.loop else comprehensions.get(code.shape.collect, "<listcomp>")
    _, *names = function.__code__.co_varnames
    function.__code__ = function.__code__.replace(
        co_name=name, co_qualname=name, co_varnames=(".0", *names)
    )
    return function
