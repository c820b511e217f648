"""Run a plan with the same result as in order: compute early, commit in program order.

The home asks `PlanRun.steps` for the statements that it must run itself. Between them the run
sends tasks and items of maps to workers as soon as their edges allow (`run_parts.py`), and commits
each in its turn (`run_node.py`): names, output, warnings, the first exception. What comes after an
exception is dropped. Whatever cannot be sent, computed or brought back stays what it was: a
statement that the home runs in its place.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from workbench.graphs.executable import ExecutablePlan
from workbench.graphs.run_crossing import laid_over
from workbench.graphs.run_node import RunningNode
from workbench.graphs.run_parts import Computed, Left, Parts, Ready, Workers
from workbench.graphs.run_remote import Outcome, compute
from workbench.protocol.plan import NodeKind

WORTH_WORKERS: Final = 2
"""How many parts must be ready, where none is on its way, before it is worth sending them."""


class _State(enum.Enum):
    WAITING = "its edges do not allow it yet, or it is a barrier"
    SENT = "workers compute it"
    KNOWN = "it is computed"
    HERE = "the home runs it in its turn"
    COMMITTED = "it is done"


class PlanRun:
    """One cell's plan in its home.

    Args:
        plan: The plan with its code.
        namespace: The home's names.
        workers: What tasks and items of maps are sent to.
        committed: Told the index of a task or map that was committed, and a bare expression's
            value.
        say: Adds a line to the job's output: kind and fields.
    """

    def __init__(
        self,
        plan: ExecutablePlan,
        namespace: dict[str, Any],
        *,
        workers: Workers,
        committed: Callable[[int, Any], None],
        say: Callable[..., None],
    ) -> None:
        self._plan = plan
        self._namespace = namespace
        self._parts = Parts(workers, namespace, say=say, tell=self._tell)
        self._committed = committed
        self._say = say
        self._states = [_State.WAITING] * len(plan.nodes)
        self._running = {
            index: RunningNode(code, plan.cell, namespace)
            for index, code in enumerate(plan.nodes)
            if code.node.kind is not NodeKind.BARRIER
        }
        self._first_failed = len(plan.nodes)

    def steps(self) -> Iterator[int]:
        """Yield the statements that the caller must run, in program order, once each.

        The caller runs one before it asks for the next.

        Raises:
            BaseException: What a task or an item of a map raised; all before it is committed.
        """
        for index in range(len(self._plan.nodes)):
            if self._bring(index):
                yield index
            self._states[index] = _State.COMMITTED

    def _bring(self, index: int) -> bool:
        """Commit a node in its turn; True where the home must run it."""
        running = self._running.get(index)
        self._on_decided(self._parts.take())
        while True:
            self._advance()
            if running is None or self._states[index] is _State.HERE:
                return True
            if self._states[index] is _State.KNOWN:
                value = running.commit()
                self._forget(index)
                self._committed(index, value)
                return False
            self._on_decided(self._parts.wait())

    def _advance(self) -> None:
        """Start all that its edges allow; what the home computes may allow more."""
        again = True
        while again:
            again = False
            ready: list[Ready] = []
            for index, running in self._running.items():
                if self._states[index] is not _State.WAITING or not self._may_start(index):
                    continue
                again = True
                if running.node.inline:
                    self._compute_here(index)
                else:
                    ready += self._ready(index)
            self._start(ready)

    def _may_start(self, index: int) -> bool:
        return index < self._first_failed and all(
            self._is_done(edge.source) for edge in self._plan.before[index]
        )

    def _is_done(self, index: int) -> bool:
        if self._states[index] is _State.KNOWN:
            return not self._running[index].fills_in_place
        return self._states[index] is _State.COMMITTED

    def _compute_here(self, index: int) -> None:
        with laid_over(self._namespace, self._early_values(index)):
            outcome = compute(self._plan, index, self._namespace, 0, 1)
        if isinstance(outcome.error, KeyboardInterrupt):
            raise outcome.error
        self._settle(index, [outcome])

    def _early_values(self, index: int) -> dict[str, Any]:
        """Return the values that a node reads and that are not committed yet, by name."""
        values = {}
        for name, source in self._plan.nodes[index].node.inputs.items():
            if self._states[source] is _State.KNOWN:
                known = self._running[source].known
                assert known is not None
                values[name] = known.names[name]
        return values

    def _ready(self, index: int) -> Iterator[Ready]:
        """Yield a node for workers, or leave it to the home."""
        gpu = self._parts.crew_for(index)
        self._states[index] = _State.HERE
        if gpu is None:
            return
        early = self._early_values(index)
        running = self._running[index]
        try:
            with laid_over(self._namespace, early):
                count = running.list_items()
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001  (it comes again when the home runs the statement)
            return
        yield Ready(node=running, count=count, gpu=gpu, early=early)

    def _start(self, ready: list[Ready]) -> None:
        """Send nodes to workers, unless that is not worth calling them."""
        if not ready:
            return
        if not self._parts.is_busy and sum(one.count for one in ready) < WORTH_WORKERS:
            return
        for one in ready:
            self._states[one.node.node.id] = _State.SENT
        self._on_decided(self._parts.send(ready))
        for one in ready:
            if one.count == 0 and self._states[one.node.node.id] is _State.SENT:
                self._settle(one.node.node.id, [])

    def _on_decided(self, decided: Iterable[Computed | Left]) -> None:
        for one in decided:
            match one:
                case Computed(index=index, outcomes=outcomes):
                    self._settle(index, outcomes)
                case Left(index=index, why=why):
                    self._states[index] = _State.HERE
                    line = self._plan.nodes[index].node.first_line
                    self._tell(f"line {line} in the home: {why}")

    def _settle(self, index: int, outcomes: list[Outcome]) -> None:
        running = self._running[index]
        with laid_over(self._namespace, self._early_values(index)):
            running.settle(outcomes)
        self._states[index] = _State.KNOWN
        assert running.known is not None
        if running.known.error is not None:
            self._first_failed = min(self._first_failed, index)

    def _tell(self, what: str) -> None:
        done = sum(state is _State.COMMITTED for state in self._states)
        self._say("progress", done=done, total=len(self._states), what=what)

    def _forget(self, index: int) -> None:
        del self._running[index]
        self._parts.forget(index)
