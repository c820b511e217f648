"""The parts of the docs that are generated from the code, and how they are written anew.

`make docs` (or `python -m tests.docs.pages`) rewrites each block between a pair of markers; the
text around them is written by hand.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, asdict, fields
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from workbench.core.decisions import Decision
from workbench.core.events import Event
from workbench.core.model import JobState
from workbench.core.settings import Quota, Settings
from workbench.core.transitions import INSTEAD, TRANSITIONS
from workbench.protocol.quantities import format_seconds

ROOT: Final = Path(__file__).parents[2]
SCHEDULER: Final = ROOT / "docs" / "scheduler.md"
AGAIN: Final = "run `make docs`"

Table = Mapping[type, Mapping[JobState | None, JobState]]


class Step(NamedTuple):
    """One arrow of the diagram."""

    before: JobState | None
    after: JobState


def state_diagram(table: Table, instead: Table) -> str:
    """Draws a transition table and the other states that may follow as Mermaid.

    GitHub renders it. Steps that stay are left out.
    """
    arrows: dict[Step, list[str]] = {}
    for entry, row in (*table.items(), *instead.items()):
        for before, after in row.items():
            if before is not after:
                arrows.setdefault(Step(before, after), []).append(entry.__name__)
    last = [state for state in _states(table) if all(step.before is not state for step in arrows)]
    lines = ["stateDiagram-v2"]
    lines += [
        f"    {name(step.before)} --> {name(step.after)} : {', '.join(entries)}"
        for step, entries in arrows.items()
    ]
    lines += [f"    {name(state)} --> [*]" for state in last]
    return "\n".join(["```mermaid", *lines, "```", "", *_staying(table)])


def _states(table: Table) -> list[JobState]:
    """Lists the states that a table leads to, in the order in which the core declares them."""
    reached = {after for row in table.values() for after in row.values()}
    return [state for state in JobState if state in reached]


def _staying(table: Table) -> Iterable[str]:
    """Says what leaves a job in its state, a line for each entry."""
    yield "What may also be heard, and leaves the job where it is:"
    yield ""
    for entry, row in table.items():
        stay = [before for before, after in row.items() if before is after]
        where = "in any state" if len(stay) == len(JobState) else ", ".join(map(name, stay))
        if stay:
            yield f"* `{entry.__name__}`: {where}"


def name(state: JobState | None) -> str:
    """Names a state as a Mermaid identifier; a job that is not known yet is where it begins."""
    return "[*]" if state is None else state.name.lower()


def entries_table(union: object, head: str) -> str:
    """Lists the classes of a union with what their docstrings say before the arguments."""
    rows = [(f"`{kind.__name__}`", _summary(kind)) for kind in get_args(union)]
    return _table((head, "means"), rows)


def settings_table(kind: type) -> str:
    """Lists the fields of a dataclass with their defaults and what its docstring says of each."""
    said = _attributes(kind)
    rows = [
        (f"`{field.name}`", _spelt(field.name, _default(field)), said[field.name])
        for field in fields(kind)
    ]
    return _table(("setting", "default", "what it does"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    every = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in every)


def _summary(kind: type) -> str:
    before, _, _ = inspect.getdoc(kind).partition("\n\nAttributes:")
    return " ".join(before.split())


def _attributes(kind: type) -> dict[str, str]:
    """Reads the `Attributes:` of a docstring in Google's style."""
    _, _, section = inspect.getdoc(kind).partition("\nAttributes:\n")
    section, _, _ = section.partition("\n\n")
    items = re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", section, flags=re.MULTILINE)
    return {field: " ".join(text.split()) for field, text in items}


def _default(field: Field[Any]) -> object:
    factory = field.default_factory
    return field.default if factory is MISSING else factory()


def _spelt(field: str, default: object) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    if field.endswith("_s") and isinstance(default, int | float):
        return format_seconds(default)
    if isinstance(default, Quota):
        said = [f"{name} {value}" for name, value in asdict(default).items() if value is not None]
        return ", ".join(said) or "none"
    is_nothing = default is None or default in ((), {})
    return "none" if is_nothing else f"{default}"


BLOCKS: Final[dict[str, Callable[[], str]]] = {
    "states": lambda: state_diagram(TRANSITIONS, INSTEAD),
    "events": lambda: entries_table(Event, "event"),
    "decisions": lambda: entries_table(Decision, "decision"),
    "settings": lambda: settings_table(Settings),
}
"""What stands between `<!-- generated: NAME -->` and `<!-- end of NAME -->`."""


def rewritten(page: str, blocks: Mapping[str, Callable[[], str]] = BLOCKS) -> str:
    """Returns a page with each generated block as it would be written now.

    Raises:
        ValueError: A block has no markers in the page.
    """
    for block, written in blocks.items():
        begin, end = f"<!-- generated: {block} -->", f"<!-- end of {block} -->"
        before, opened, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not (opened and closed):
            raise ValueError(f"the page has no block {begin} … {end}: put both markers in")
        page = f"{before}{begin}\n\n{written()}\n\n{end}{after}"
    return page


if __name__ == "__main__":
    SCHEDULER.write_text(rewritten(SCHEDULER.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote the generated parts of {SCHEDULER.relative_to(ROOT)}")
