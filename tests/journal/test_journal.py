import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.core.builders import Lab, copy_of, history, same
from workbench import __version__
from workbench.core.errors import PeerError
from workbench.core.events import Tick
from workbench.core.scheduler import Scheduler
from workbench.journal.errors import JournalError, JournalTooNew
from workbench.journal.journal import SNAPSHOT_EVERY_ENTRIES, Journal
from workbench.policies.fifo import Fifo

TICKS = [Tick(at=float(at)) for at in range(1000)]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite3"


def damage(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


def entries_of(path: Path) -> list[object]:
    with Journal.open(path) as journal:
        return list(journal.entries())


def test_what_was_appended_is_there_after_it_was_opened_again(path: Path) -> None:
    entries = history().entries
    with Journal.open(path) as journal:
        for entry in entries:
            journal.append([entry])
        assert list(journal.entries()) == entries
    assert entries_of(path) == entries


def test_appending_goes_on_where_the_last_process_stopped(path: Path) -> None:
    for tick in TICKS[:3]:
        with Journal.open(path) as journal:
            journal.append([tick])
    assert entries_of(path) == TICKS[:3]


def test_appending_nothing_changes_nothing(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append([])
        assert list(journal.entries()) == []


def test_a_write_is_on_disk_before_append_returns(path: Path) -> None:
    """A killed process loses nothing that `append` returned from."""
    script = (
        "import os, sys\nfrom pathlib import Path\n"
        "from workbench.core.events import Tick\nfrom workbench.journal.journal import Journal\n"
        "journal = Journal.open(Path(sys.argv[1]))\n"
        "assert journal._one('PRAGMA journal_mode') == 'wal'\n"
        "assert journal._one('PRAGMA synchronous') == 2\n"
        "journal.append([Tick(at=float(at)) for at in range(1000)])\nos.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, path], cwd=ROOT, check=False)
    assert killed.returncode == -9
    assert entries_of(path) == TICKS


@pytest.mark.parametrize("cut", [0, 1, 17, None])
def test_restoring_from_a_snapshot_equals_never_having_stopped(path: Path, cut: int | None) -> None:
    lab = history()
    cut = len(lab.entries) if cut is None else cut
    with Journal.open(path) as journal:
        journal.append(lab.entries[:cut])
        journal.compact(Scheduler.restore(Fifo(), lab.entries[:cut]).state)
        journal.append(lab.entries[cut:])
    with Journal.open(path) as journal:
        assert list(journal.entries()) == lab.entries[cut:]
        assert list(journal._read(after=0)) == lab.entries
        restored = Scheduler.restore(Fifo(), journal.entries(), journal.snapshot())
    assert same(restored.state, lab.state)


def test_there_is_no_snapshot_before_the_first(path: Path) -> None:
    with Journal.open(path) as journal:
        assert journal.snapshot() is None


def test_a_snapshot_is_due_after_so_many_entries(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append(TICKS[:1] * (SNAPSHOT_EVERY_ENTRIES - 1))
        assert not journal.is_compaction_due
        journal.append(TICKS[:1])
        assert journal.is_compaction_due
        journal.compact(Lab().state)
        assert not journal.is_compaction_due
        assert list(journal.entries()) == []
        journal.append(TICKS[:1])
    with Journal.open(path) as journal:
        assert not journal.is_compaction_due
        assert list(journal.entries()) == TICKS[:1]


def test_facts_about_the_lab_are_kept_beside_the_entries(path: Path) -> None:
    with Journal.open(path) as journal:
        assert journal.get_meta("boot_id") is None
        journal.set_meta("boot_id", "one")
        journal.set_meta("boot_id", "two")
    with Journal.open(path) as journal:
        assert journal.get_meta("boot_id") == "two"


# --- what can go wrong -------------------------------------------------------------------------


def test_a_later_format_is_refused_with_both_versions_and_left_as_it_is(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append(TICKS[:1])
        journal.set_meta("written_by", "9.9.9")
    damage(path, "PRAGMA user_version=4")
    with pytest.raises(JournalTooNew) as refusal:
        Journal.open(path)
    assert f"written by Workbench 9.9.9 (format 4); this is Workbench {__version__}" in str(
        refusal.value
    )
    assert "Install that version" in refusal.value.next_step
    damage(path, "PRAGMA user_version=1")
    assert entries_of(path) == TICKS[:1]


def test_a_later_format_with_other_tables_is_refused_all_the_same(path: Path) -> None:
    damage(path, "PRAGMA user_version=7")
    with pytest.raises(JournalTooNew, match=r"written by a later version of Workbench \(format 7"):
        Journal.open(path)


def test_an_unknown_entry_is_a_later_versions(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append(TICKS[:1])
        journal.set_meta("written_by", "9.9.9")
    damage(path, "INSERT INTO entries VALUES (2, 'Teleport', '{}')")
    with pytest.raises(JournalTooNew, match=r"Workbench 9\.9\.9 \(the entry 'Teleport'\)"):
        entries_of(path)


@pytest.mark.parametrize("body", ["{", "{}", '{"at":"noon"}', ""])
def test_a_damaged_entry_is_named(path: Path, body: str) -> None:
    with Journal.open(path) as journal:
        journal.append(TICKS[:2])
    damage(path, f"UPDATE entries SET body = '{body}' WHERE position = 2")
    with pytest.raises(JournalError, match=r"damaged: entry 2 \(Tick\) cannot be read"):
        entries_of(path)


def test_a_snapshot_that_contradicts_itself_is_refused(path: Path) -> None:
    state = copy_of(history().state)
    state.leased_cores += 1
    with Journal.open(path) as journal:
        journal.append(TICKS[:2])
        journal.compact(state)
        with pytest.raises(JournalError, match="the snapshot at entry 2"):
            journal.snapshot()


def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_text("not a database, but long enough to be taken for one" * 100)
    before = path.read_bytes()
    with pytest.raises(JournalError, match="is not a journal") as refusal:
        Journal.open(path)
    assert "Move it aside" in refusal.value.next_step
    assert path.read_bytes() == before


def test_a_torn_file_is_refused(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append(TICKS)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(JournalError, match="is damaged") as refusal:
        entries_of(path)
    assert "Move it aside" in refusal.value.next_step


def test_a_full_disk_loses_the_batch_and_nothing_else(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append(TICKS[:10])
        pages = journal._one("PRAGMA page_count")
        journal._connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(JournalError, match="the disk is full") as failure:
            journal.append(TICKS * 5)
        assert "Free space" in failure.value.next_step
        with pytest.raises(JournalError, match="the disk is full"):
            journal.compact(history().state)
        assert list(journal.entries()) == TICKS[:10]
        journal._connection.execute(f"PRAGMA max_page_count={pages + 1000}")
        journal.append(TICKS[10:])
    assert entries_of(path) == TICKS


def test_a_locked_journal_loses_the_batch_and_nothing_else(path: Path) -> None:
    with (
        Journal.open(path, busy_timeout_s=0) as journal,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match="is locked by another process"):
            journal.append(TICKS[:2])
        other.execute("ROLLBACK")
        journal.append(TICKS[:2])
        assert list(journal.entries()) == TICKS[:2]


def test_of_two_writers_the_second_is_refused(path: Path) -> None:
    with Journal.open(path) as one, Journal.open(path) as two:
        one.append(TICKS[:2])
        with pytest.raises(JournalError, match="was written by another controller"):
            two.append(TICKS[2:4])
        one.append(TICKS[2:4])
        assert list(one.entries()) == TICKS[:4]


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may write anywhere; anyone else is nobody already."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_folder_that_cannot_be_written_is_named(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    with as_nobody(), pytest.raises(JournalError, match="cannot be opened") as failure:
        Journal.open(open_folder / "journal.sqlite3")
    assert "this user may write there" in failure.value.next_step
    assert list(open_folder.iterdir()) == []


def test_a_file_that_cannot_be_written_is_named(open_folder: Path) -> None:
    path = open_folder / "journal.sqlite3"
    Journal.open(path).close()
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with as_nobody(), pytest.raises(JournalError, match=r"cannot be (opened|written)"):
        Journal.open(path).append(TICKS[:1])


def test_a_folder_that_is_not_there_is_the_peers_fault(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="cannot be opened"):
        Journal.open(tmp_path / "nowhere" / "journal.sqlite3")
