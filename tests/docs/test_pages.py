"""The generated parts of the docs are those of the code as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.docs.pages import (
    AGAIN,
    ROOT,
    SCHEDULER,
    entries_table,
    rewritten,
    settings_table,
    state_diagram,
)
from workbench.core.decisions import Decision, Grant, Stop
from workbench.core.events import JobSubmitted, LeaseEnded, LeaseStarted
from workbench.core.model import JobState
from workbench.core.transitions import INSTEAD, TRANSITIONS

QUEUED, STARTING, RUNNING, *_, ENDED = JobState
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_page_on_the_scheduler_is_that_of_the_code() -> None:
    page = SCHEDULER.read_text(encoding="utf-8")
    assert page == rewritten(page), f"docs/scheduler.md is stale: {AGAIN}"


def test_the_page_says_what_each_state_means() -> None:
    page = SCHEDULER.read_text(encoding="utf-8")
    unsaid = [state.name for state in JobState if f"* **{state}**: " not in page]
    assert unsaid == [], "docs/scheduler.md says nothing of these states: write a line on each"


def test_every_step_of_the_table_is_drawn_or_said() -> None:
    drawn = state_diagram(TRANSITIONS, INSTEAD)
    for entry, row in (*TRANSITIONS.items(), *INSTEAD.items()):
        for before, after in row.items():
            if before is None:
                arrow = rf"\[\*\] --> {after.name.lower()} : .*\b{entry.__name__}\b"
            elif before is not after:
                arrow = f"{before.name.lower()} --> {after.name.lower()} : .*\\b{entry.__name__}\\b"
            else:
                arrow = f"`{entry.__name__}`: (in any state|.*\\b{before.name.lower()}\\b)"
            assert re.search(arrow, drawn), (entry, before, after)


def test_a_step_that_is_added_to_the_table_is_drawn() -> None:
    table = {
        JobSubmitted: {None: QUEUED, QUEUED: QUEUED},
        Grant: {QUEUED: STARTING},
        LeaseStarted: {STARTING: RUNNING},
        LeaseEnded: {STARTING: ENDED},
        Stop: {STARTING: ENDED, RUNNING: QUEUED},
    }
    assert state_diagram(table, {LeaseEnded: {RUNNING: QUEUED}}).splitlines() == [
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> queued : JobSubmitted",
        "    queued --> starting : Grant",
        "    starting --> running : LeaseStarted",
        "    starting --> ended : LeaseEnded, Stop",
        "    running --> queued : Stop, LeaseEnded",
        "    ended --> [*]",
        "```",
        "",
        "What may also be heard, and leaves the job where it is:",
        "",
        "* `JobSubmitted`: queued",
    ]


@dataclass(kw_only=True)
class Rules:
    """A lab's rules.

    Attributes:
        pause_s: How long,
            at least.
        part: A part.
        is_kind: Whether.
        bound_s: A bound.
        quotas: By owner.
    """

    pause_s: float = 90.0
    part: float = 0.25
    is_kind: bool = True
    bound_s: float | None = None
    quotas: dict[str, float] = field(default_factory=dict)


def test_settings_are_listed_with_their_defaults_as_people_write_them() -> None:
    assert settings_table(Rules).splitlines()[2:] == [
        "| `pause_s` | 2 min | How long, at least. |",
        "| `part` | 0.25 | A part. |",
        "| `is_kind` | on | Whether. |",
        "| `bound_s` | none | A bound. |",
        "| `quotas` | none | By owner. |",
    ]


def test_a_decision_is_listed_with_what_its_class_says() -> None:
    assert (
        "| `Stop` | End the job's process tree; confirmed by `LeaseEnded`. `outcome` is what the "
        "job gets. |" in entries_table(Decision, "decision").splitlines()
    )


def test_only_what_is_between_markers_is_rewritten() -> None:
    page = "by hand\n<!-- generated: one -->\nold\n<!-- end of one -->\nby hand\n"
    again = rewritten(page, {"one": lambda: "new"})
    assert again == "by hand\n<!-- generated: one -->\n\nnew\n\n<!-- end of one -->\nby hand\n"
    assert rewritten(again, {"one": lambda: "new"}) == again


@pytest.mark.parametrize("page", ["", "<!-- generated: one -->", "<!-- end of one -->"])
def test_a_page_without_both_markers_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="has no block <!-- generated: one -->"):
        rewritten(page, {"one": lambda: ""})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_of_the_project_leads_to_one(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []
