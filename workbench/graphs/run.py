"""Run a plan with the same result as in order: compute early, commit in program order.

The home's main thread asks `PlanRun.steps` for the statements that it must run itself. Between
them the run sends tasks and items of maps to workers as soon as their edges allow, and commits
each in its turn: names, output, warnings, the first exception. What comes after an exception is
dropped. Whatever cannot be sent, computed or brought back stays what it was: a statement that the
home runs in its place.
"""

from __future__ import annotations

import enum
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from workbench.boundary import CannotCross
from workbench.graphs.errors import WorkerLost
from workbench.graphs.executable import ExecutablePlan
from workbench.graphs.run_crossing import Answer, Sent, laid_over, send
from workbench.graphs.run_files import RunFiles
from workbench.graphs.run_node import RunningNode
from workbench.graphs.run_remote import ITEMS, Outcome, compute, work
from workbench.protocol.plan import NodeKind

if TYPE_CHECKING:
    from workbench.graphs.dask_edge import Pool

BATCHES_EACH: Final = 4
"""Parts of a map for each worker: fewer make them wait for the slowest, more cost messages."""
LOSSES: Final = 2
"""A part that ended so many workers is not tried again."""


class Crew(Protocol):
    """Workers of one kind that wait to be called: `engines.gate.Gate`."""

    count: int

    def fileno(self) -> int:
        """Return a descriptor that shows an error when the last of them is gone."""

    def open(self) -> None:
        """Call them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """What a run can call upon.

    Attributes:
        files: Where they and the home meet.
        crews: By whether they have a GPU.
        uses_gpu: Whether the node's code can use one.
    """

    files: RunFiles
    crews: Mapping[bool, Crew]
    uses_gpu: Callable[[int], bool]


class _State(enum.Enum):
    WAITING = "its edges do not allow it yet, or it is a barrier"
    SENT = "workers compute it"
    KNOWN = "it is computed"
    HERE = "the home runs it in its turn"
    COMMITTED = "it is done"


@dataclass(slots=True, kw_only=True)
class _Part:
    """A task, or neighbouring items of a map, as it was sent."""

    node: int
    start: int
    stop: int
    gpu: bool
    sent: Sent
    losses: int = 0
    tries: int = 0
    outcome: Outcome | None = None

    @property
    def mark(self) -> str:
        """Names this very attempt."""
        return f"{self.node}-{self.start}-{self.tries}"


@dataclass(slots=True, kw_only=True)
class _Ready:
    """Nodes that go with one crossing."""

    nodes: list[tuple[int, int, bool]] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


class PlanRun:
    """One cell's plan in its home.

    Args:
        plan: The plan with its code.
        namespace: The home's names.
        workers: None where none were started: then the home runs every statement.
        committed: Told the index of a task or map that was committed, and a bare expression's
            value.
        say: Adds a line to the job's output: kind and fields.
    """

    def __init__(
        self,
        plan: ExecutablePlan,
        namespace: dict[str, Any],
        *,
        workers: Workers | None,
        committed: Callable[[int, Any], None],
        say: Callable[..., None],
    ) -> None:
        self._plan = plan
        self._namespace = namespace
        self._workers = workers
        self._committed = committed
        self._say = say
        self._states = [_State.WAITING] * len(plan.nodes)
        self._running = {
            index: RunningNode(code, plan.cell, namespace)
            for index, code in enumerate(plan.nodes)
            if code.node.kind is not NodeKind.BARRIER
        }
        self._parts: dict[int, list[_Part]] = {}
        self._by_mark: dict[str, _Part] = {}
        self._pool: Pool | None = None
        self._deserted: set[bool] = set()
        self._crossings = 0
        self._first_failed = len(plan.nodes)

    def steps(self) -> Iterator[int]:
        """Yield the statements that the caller must run, in program order, once each.

        The caller runs one before it asks for the next, and closes the iterator.

        Raises:
            BaseException: What a task or an item of a map raised; all before it is committed.
        """
        try:
            for index in range(len(self._plan.nodes)):
                if self._bring(index):
                    self._states[index] = _State.HERE
                    yield index
                self._states[index] = _State.COMMITTED
        finally:
            self._end()

    def _bring(self, index: int) -> bool:
        """Commit a node in its turn; True where the home must run it."""
        running = self._running.get(index)
        while self._pool is not None and (news := self._pool.take()) is not None:
            self._on_news(news)
        while True:
            self._advance()
            if running is None or self._states[index] is _State.HERE:
                return True
            if self._states[index] is _State.KNOWN:
                value = running.commit()
                self._forget(index)
                self._committed(index, value)
                return False
            assert self._pool is not None
            self._on_news(self._pool.wait())

    # --- what may start ---

    def _advance(self) -> None:
        """Start all that its edges allow; what the home computes may allow more."""
        again = True
        while again:
            again = False
            ready: list[int] = []
            for index, running in self._running.items():
                if self._states[index] is not _State.WAITING or not self._may_start(index):
                    continue
                if running.node.inline:
                    self._compute_here(index)
                    again = True
                else:
                    ready.append(index)
            if ready:
                self._start(ready)
                again = True

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

    def _start(self, ready: list[int]) -> None:
        """Send these nodes to workers, or leave them to the home where that is as good."""
        counts: list[tuple[int, int, bool]] = []
        for index in ready:
            gpu = self._crew_for(index)
            if gpu is None:
                self._states[index] = _State.HERE
                continue
            try:
                with laid_over(self._namespace, self._early_values(index)):
                    counts.append((index, self._running[index].list_items(), gpu))
            except KeyboardInterrupt:
                raise
            except BaseException:  # noqa: BLE001  (the home raises it when it runs the statement)
                self._states[index] = _State.HERE
        if self._pool is None and sum(count for _, count, _ in counts) < 2:  # noqa: PLR2004
            for index, _, _ in counts:
                self._states[index] = _State.HERE
            return
        for together in self._together(counts):
            self._send(together)

    def _crew_for(self, index: int) -> bool | None:
        """Whether the node's workers have a GPU; None where there are no workers for it."""
        workers = self._workers
        if workers is None:
            return None
        gpu = True in workers.crews and workers.uses_gpu(index)
        return gpu if gpu in workers.crews and gpu not in self._deserted else None

    def _together(self, counts: list[tuple[int, int, bool]]) -> Iterator[_Ready]:
        """Group nodes so that within a crossing every name has one value."""
        ready = _Ready()
        for index, count, gpu in counts:
            early = self._early_values(index)
            node = self._running[index]
            clash = any(ready.values.get(name, value) is not value for name, value in early.items())
            clash |= any(
                (name in ready.values) != (name in early)
                for name in node.node.reads
                if name in ready.names
            )
            if clash and ready.nodes:
                yield ready
                ready = _Ready()
            ready.nodes.append((index, count, gpu))
            ready.values |= early
            ready.names |= dict.fromkeys(node.worker_names())
            if self._plan.nodes[index].map is not None:
                ready.values[ITEMS.format(index)] = node.items
                ready.names[ITEMS.format(index)] = None
        if ready.nodes:
            yield ready

    def _send(self, ready: _Ready) -> None:
        assert self._workers is not None
        number = self._crossings
        self._crossings += 1
        try:
            sent = send(self._workers.files, number, self._namespace, ready.names, ready.values)
        except CannotCross:
            for index, _, _ in ready.nodes:
                self._states[index] = _State.HERE
            return
        self._open()
        for index, count, gpu in ready.nodes:
            self._states[index] = _State.SENT
            self._parts[index] = [
                _Part(node=index, start=start, stop=stop, gpu=gpu, sent=sent)
                for start, stop in _batches(count, BATCHES_EACH * self._workers.crews[gpu].count)
            ]
            for part in self._parts[index]:
                self._submit(part)
            self._look(index)

    def _open(self) -> None:
        if self._pool is not None:
            return
        from workbench.graphs.dask_edge import Pool

        assert self._workers is not None
        crews = self._workers.crews
        self._pool = Pool(self._workers.files, {gpu: crew.fileno() for gpu, crew in crews.items()})
        self._pool.start()
        for crew in crews.values():
            crew.open()

    def _submit(self, part: _Part) -> None:
        assert self._pool is not None
        assert self._workers is not None
        part.tries += 1
        self._by_mark[part.mark] = part
        oldest = min(
            one.sent.number
            for parts in self._parts.values()
            for one in parts
            if one.outcome is None
        )
        job = str(self._workers.files.job)
        arguments = (job, part.sent.number, oldest, part.node, part.start, part.stop, part.mark)
        self._pool.submit(part.mark, work, *arguments, gpu=part.gpu)

    # --- what workers answer ---

    def _on_news(self, news: Any) -> None:
        from workbench.graphs.dask_edge import Broke, Deserted, Done, Lost

        match news:
            case Done(key=mark, value=answer):
                self._on_answer(mark, answer)
            case Lost(key=mark, worker=worker):
                self._on_lost(mark, worker)
            case Broke(key=mark, error=error):
                part = self._by_mark.pop(mark, None)
                if part is not None:
                    self._leave(part.node, error)
            case Deserted(gpu=gpu):
                self._on_deserted(gpu=gpu)

    def _on_answer(self, mark: str, answer: Answer) -> None:
        part = self._by_mark.pop(mark, None)
        if part is None:
            return
        try:
            part.outcome = part.sent.load(answer)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  (making it ran the user's own code)
            self._leave(part.node, error)
            return
        self._say(
            "place",
            what=self._spell(part),
            where=answer.worker,
            start_unix_s=answer.start_unix_s,
            end_unix_s=answer.end_unix_s,
        )
        self._look(part.node)

    def _on_lost(self, mark: str, worker: str) -> None:
        """Try a part again whose worker died; the one that it was computing, only once."""
        part = self._by_mark.pop(mark, None)
        if part is None:
            return
        part.losses += self._was_running(worker, mark)
        if part.losses < LOSSES:
            self._tell(f"{self._spell(part)} again: {worker} died in it")
            self._submit(part)
        else:
            self._give_up(part)

    def _on_deserted(self, *, gpu: bool) -> None:
        """Leave to the home what no worker is left for, but what ended the workers."""
        self._deserted.add(gpu)
        parts = [part for part in self._by_mark.values() if part.gpu == gpu]
        for part in parts:
            self._by_mark.pop(part.mark, None)
            part.losses += any(
                one.read_text(encoding="ascii") == part.mark for one in self._marks()
            )
            if part.losses >= LOSSES:
                self._give_up(part)
            elif part.outcome is None:
                self._leave(part.node, "no worker is left")

    def _was_running(self, worker: str, mark: str) -> bool:
        assert self._workers is not None
        path = self._workers.files.running(worker)
        return path.exists() and path.read_text(encoding="ascii") == mark

    def _marks(self) -> list[Any]:
        assert self._workers is not None
        return sorted(self._workers.files.directory.glob("*.running"))

    def _give_up(self, part: _Part) -> None:
        part.outcome = Outcome(
            error=WorkerLost(
                f"{self._spell(part)} ended the process that ran it, {LOSSES} times",
                next_step="Look at its memory, and run it in a cell with --split none",
            )
        )
        self._look(part.node)

    def _leave(self, index: int, why: object) -> None:
        """Have the home run a node in its turn, whatever became of its parts."""
        if self._states[index] is _State.SENT:
            self._states[index] = _State.HERE
            for part in self._parts[index]:
                self._by_mark.pop(part.mark, None)
            self._tell(f"line {self._plan.nodes[index].node.first_line} here: {why}")

    def _look(self, index: int) -> None:
        """See whether all is there that a node needs to be known."""
        if self._states[index] is not _State.SENT:
            return
        outcomes = []
        for part in self._parts[index]:
            if part.outcome is None:
                return
            outcomes.append(part.outcome)
            if part.outcome.error is not None:
                break
        with laid_over(self._namespace, self._early_values(index)):
            self._settle(index, outcomes)

    def _settle(self, index: int, outcomes: list[Outcome]) -> None:
        running = self._running[index]
        running.settle(outcomes)
        self._states[index] = _State.KNOWN
        assert running.known is not None
        if running.known.error is not None:
            self._first_failed = min(self._first_failed, index)

    # --- words, and the end ---

    def _spell(self, part: _Part) -> str:
        node = self._plan.nodes[part.node].node
        line = f"line {node.first_line}"
        if node.kind is not NodeKind.MAP:
            return line
        return f"{line}, items {part.start + 1} to {part.stop}"

    def _tell(self, what: str) -> None:
        done = sum(state is _State.COMMITTED for state in self._states)
        self._say("progress", done=done, total=len(self._states), what=what)

    def _forget(self, index: int) -> None:
        """Let go of what was kept for a node; its crossing too if nobody else needs that."""
        self._running.pop(index)
        numbers = {part.sent.number for part in self._parts.pop(index, ())}
        numbers -= {part.sent.number for parts in self._parts.values() for part in parts}
        for number in numbers:
            assert self._workers is not None
            shutil.rmtree(self._workers.files.crossing(number))

    def _end(self) -> None:
        if self._pool is not None:
            self._pool.cancel()
            self._pool.close()


def _batches(count: int, parts: int) -> Iterator[tuple[int, int]]:
    """Cut `count` items into at most so many neighbouring parts, as equal as can be."""
    parts = max(1, min(count, parts))
    for number in range(parts if count else 0):
        yield number * count // parts, (number + 1) * count // parts
