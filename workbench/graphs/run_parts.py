"""What a run has sent to its workers, and what comes back: crossings, parts, lost workers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from workbench.boundary import CannotCross
from workbench.graphs.errors import WorkerLost, WrongDevice
from workbench.graphs.run_crossing import Sent, send
from workbench.graphs.run_files import RunFiles
from workbench.graphs.run_news import Broke, Crew, Deserted, Done, Lost, News
from workbench.graphs.run_node import RunningNode
from workbench.graphs.run_remote import ITEMS, Outcome, work

if TYPE_CHECKING:
    from workbench.graphs.dask_edge import Pool

BATCHES_EACH: Final = 4
"""Parts of a map for each worker: fewer make them wait for the slowest, more cost messages."""
LOSSES: Final = 2
"""A part that ended so many workers is not tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """What a run can call upon.

    Attributes:
        files: Where they and the home meet.
        crews: By whether they have a GPU.
        pool: Their scheduler, which may be about to start.
        uses_gpu: Whether the node with this id is for a GPU: one was leased, and its code can
            use it.
    """

    files: RunFiles
    crews: Mapping[bool, Crew]
    pool: Pool
    uses_gpu: Callable[[int], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A node that may be sent.

    Attributes:
        count: How many items it has; 1 for a task.
        gpu: Which workers it is for.
        early: The values that it reads and that are not committed yet, by name.
    """

    node: RunningNode
    count: int
    gpu: bool
    early: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """A node's parts are there, in order, up to the first that failed."""

    index: int
    outcomes: list[Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A node could not be computed by workers, or its result could not come back."""

    index: int
    why: object


@dataclass(slots=True, kw_only=True)
class _Part:
    """A task, or neighbouring items of a map."""

    node: RunningNode
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
        return f"{self.node.node.id}-{self.start}-{self.tries}"

    def __str__(self) -> str:
        line = f"line {self.node.node.first_line}"
        if not self.node.is_map:
            return line
        if self.stop == self.start + 1:
            return f"{line}, item {self.stop}"
        return f"{line}, items {self.start + 1} to {self.stop}"


@dataclass(slots=True, kw_only=True)
class _Group:
    """Nodes that go with one crossing, in which every name has one value."""

    nodes: list[Ready] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def fits(self, ready: Ready) -> bool:
        """Whether the names that a node reads have the values that it needs."""
        return all(
            self.values.get(name, value) is value for name, value in ready.early.items()
        ) and all(
            (name in self.values) == (name in ready.early)
            for name in ready.node.node.reads
            if name in self.names
        )

    def add(self, ready: Ready) -> None:
        """Take a node that fits."""
        self.nodes.append(ready)
        self.values |= ready.early
        self.names |= dict.fromkeys(ready.node.worker_names())
        if ready.node.is_map:
            name = ITEMS.format(ready.node.node.id)
            self.values[name] = ready.node.items
            self.names[name] = None


class Parts:
    """The parts of one run.

    Args:
        workers: What can be called upon.
        namespace: The home's names.
        say: Adds a line to the job's output: kind and fields.
        tell: Tells the user what went otherwise than planned.
    """

    def __init__(
        self,
        workers: Workers,
        namespace: dict[str, Any],
        *,
        say: Callable[..., None],
        tell: Callable[[str], None],
    ) -> None:
        self._workers = workers
        self._files = workers.files
        self._namespace = namespace
        self._say = say
        self._tell = tell
        self._pool = workers.pool
        self._is_ready = False
        self._deserted: set[bool] = set()
        self._crossings = 0
        self._parts: dict[int, list[_Part]] = {}
        self._by_mark: dict[str, _Part] = {}

    @property
    def is_busy(self) -> bool:
        """Whether something was sent that is not decided."""
        return bool(self._by_mark)

    def crew_for(self, index: int) -> bool | None:
        """Return whether a node's workers have a GPU; None where there are none for it."""
        gpu = self._workers.uses_gpu(index)
        return gpu if gpu in self._workers.crews and gpu not in self._deserted else None

    def send(self, ready: Sequence[Ready]) -> Iterator[Left]:
        """Send nodes; yields those that cannot go."""
        groups: list[_Group] = []
        for one in ready:
            if not groups or not groups[-1].fits(one):
                groups.append(_Group())
            groups[-1].add(one)
        for group in groups:
            number, self._crossings = self._crossings, self._crossings + 1
            try:
                sent = send(self._files, number, self._namespace, group.names, group.values)
            except CannotCross as error:
                for one in group.nodes:
                    yield Left(index=one.node.node.id, why=error)
            else:
                if not self._is_ready:
                    self._pool.wait_ready()
                    self._is_ready = True
                for one in group.nodes:
                    self._cut(one, sent)

    def wait(self) -> list[Computed | Left]:
        """Wait until something comes back; return what is decided by it."""
        return self._on_news(self._pool.wait())

    def take(self) -> list[Computed | Left]:
        """Return what was decided by what came back meanwhile."""
        decided: list[Computed | Left] = []
        while (news := self._pool.take()) is not None:
            decided += self._on_news(news)
        return decided

    def forget(self, index: int) -> None:
        """Let go of what was kept for a node; its crossing too if nobody else needs that."""
        parts = self._parts.pop(index, [])
        for part in parts:
            self._by_mark.pop(part.mark, None)
        numbers = {part.sent.number for part in parts}
        numbers -= {part.sent.number for some in self._parts.values() for part in some}
        for number in numbers:
            shutil.rmtree(self._files.crossing(number))

    def _cut(self, ready: Ready, sent: Sent) -> None:
        batches = BATCHES_EACH * self._workers.crews[ready.gpu].count
        parts = [
            _Part(node=ready.node, start=start, stop=stop, gpu=ready.gpu, sent=sent)
            for start, stop in _batches(ready.count, batches)
        ]
        self._parts[ready.node.node.id] = parts
        for part in parts:
            self._submit(part)

    def _submit(self, part: _Part) -> None:
        part.tries += 1
        self._by_mark[part.mark] = part
        oldest = min(
            one.sent.number
            for parts in self._parts.values()
            for one in parts
            if one.outcome is None
        )
        job, node = str(self._files.job), part.node.node.id
        arguments = (job, part.sent.number, oldest, node, part.start, part.stop, part.mark)
        self._pool.submit(part.mark, work, *arguments, gpu=part.gpu)

    # --- what comes back ---

    def _on_news(self, news: News) -> list[Computed | Left]:
        if isinstance(news, Deserted):
            return self._on_deserted(gpu=news.gpu)
        part = self._by_mark.pop(news.key, None)
        if part is None:  # Its node is decided already.
            return []
        match news:
            case Done():
                return self._on_done(part)
            case Lost(worker=worker):
                return self._on_lost(part, worker)
            case Broke(error=error):
                return [self._leave(part, error)]

    def _on_done(self, part: _Part) -> list[Computed | Left]:
        try:
            answer = part.sent.load(part.mark)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  (making it ran the user's own code)
            return [self._leave(part, error)]
        part.outcome = answer.value
        self._say(
            "place",
            what=str(part),
            where=answer.worker,
            start_unix_s=answer.start_unix_s,
            end_unix_s=answer.end_unix_s,
        )
        return self._look(part)

    def _on_lost(self, part: _Part, worker: str) -> list[Computed | Left]:
        """Try a part again whose worker died; the one that it was computing, only once."""
        running = self._files.running(worker)
        if running.exists() and running.read_text(encoding="ascii") == part.mark:
            part.losses += 1
            if part.losses >= LOSSES:
                return self._give_up(part)
            self._tell(f"{part} again: {worker} died in it")
        self._submit(part)
        return []

    def _on_deserted(self, *, gpu: bool) -> list[Computed | Left]:
        """Leave to the home what no worker is left for, but not what ended the workers."""
        self._deserted.add(gpu)
        running = {path.read_text("ascii") for path in self._files.directory.glob("*.running")}
        decided: list[Computed | Left] = []
        for part in [one for one in self._by_mark.values() if one.gpu == gpu]:
            if self._by_mark.pop(part.mark, None) is None:  # The node was decided meanwhile.
                continue
            part.losses += part.mark in running
            if gpu and self._files.refused.exists():
                part.outcome = Outcome(error=self._refusal())
                decided += self._look(part)
            elif part.losses >= LOSSES:
                decided += self._give_up(part)
            else:
                decided.append(self._leave(part, "no worker is left"))
        return decided

    def _refusal(self) -> WrongDevice:
        return WrongDevice(
            self._files.refused.read_text(encoding="utf-8"),
            next_step="Look for what sets CUDA_VISIBLE_DEVICES when Python starts",
        )

    def _give_up(self, part: _Part) -> list[Computed | Left]:
        part.outcome = Outcome(
            error=WorkerLost(
                f"{part} ended the process that ran it, {LOSSES} times",
                next_step="See whether its memory suffices, or run it with --split none",
            )
        )
        return self._look(part)

    def _leave(self, part: _Part, why: object) -> Left:
        """Give a node back to the home, whatever becomes of its other parts."""
        index = part.node.node.id
        self.forget(index)
        return Left(index=index, why=why)

    def _look(self, part: _Part) -> list[Computed | Left]:
        """See whether all is there that the part's node needs to be known."""
        index = part.node.node.id
        outcomes = []
        for one in self._parts[index]:
            if one.outcome is None:
                return []
            outcomes.append(one.outcome)
            if one.outcome.error is not None:
                break
        for one in self._parts[index]:
            self._by_mark.pop(one.mark, None)
        return [Computed(index=index, outcomes=outcomes)]


def _batches(count: int, parts: int) -> Iterator[tuple[int, int]]:
    """Cut `count` items into at most so many neighbouring parts, as equal as can be."""
    parts = min(count, parts)
    for number in range(parts):
        yield number * count // parts, (number + 1) * count // parts
