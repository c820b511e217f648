"""A journal of each released format must load."""

import shutil
from pathlib import Path
from typing import get_args

import pytest

from tests.core.builders import same
from tests.journal.golden import BOOT_ID, GOLDEN, golden_lab
from workbench.core.decisions import Decision
from workbench.core.events import Event
from workbench.core.scheduler import Scheduler
from workbench.journal.codec import FORMAT
from workbench.journal.journal import Journal
from workbench.policies.fifo import Fifo

FORMATS = range(1, FORMAT + 1)


def test_the_golden_history_has_every_event_and_decision_in_it() -> None:
    kinds = {type(entry) for entry in golden_lab()[0].entries}
    assert kinds == {*get_args(Event), *get_args(Decision)}


@pytest.mark.parametrize("format_", FORMATS)
def test_a_journal_of_a_released_format_loads(tmp_path: Path, format_: int) -> None:
    lab, covered = golden_lab(format_)
    path = tmp_path / "journal.sqlite3"
    shutil.copy(GOLDEN / f"journal_v{format_}.sqlite3", path)
    with Journal.open(path) as journal:
        assert list(journal._read(after=0)) == lab.entries
        assert list(journal.entries()) == lab.entries[covered:]
        restored = Scheduler.restore(Fifo(), journal.entries(), journal.snapshot())
        assert same(restored.state, lab.state)
        assert journal.get_meta("boot_id") == BOOT_ID
