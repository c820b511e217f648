"""`%gpu-timeline` in a real notebook: of the last job, of a named one, of none."""

from __future__ import annotations

from tests.integration.lab import Lab

CELL = "%%gpu-schedule --split none --name {}\na = 1\nb = a + 1"


def test_the_timeline_is_of_the_last_job_or_of_the_named_one(shared_lab: Lab) -> None:
    notebook = shared_lab.notebook()
    none = notebook.run("%gpu-timeline")
    assert none.error.startswith("UserError: this notebook has not scheduled a cell yet.")
    assert notebook.run(CELL.format("first")).ok
    (first,) = [one.name for one in shared_lab.jobs.iterdir()]
    assert notebook.run(CELL.format("second")).ok
    last = notebook.run("%gpu-timeline").result or ""
    assert "(second): done on 2 cores (CPU)" in last
    assert [line.split()[:3] for line in last.splitlines()[2:]] == [
        ["line", "2", "home"],
        ["line", "3", "home"],
    ]
    named = notebook.run(f"%gpu-timeline {first[:8]}").result or ""
    assert named.startswith(f"job {first[:8]} (first): done on 2 cores (CPU)")


def test_a_job_that_is_not_there_is_named(shared_lab: Lab) -> None:
    run = shared_lab.notebook().run("%gpu-timeline feed")
    assert run.error.startswith("UserError: there is no job 'feed' of yours here")
