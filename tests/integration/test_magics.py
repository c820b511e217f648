"""The magics beside a scheduled cell: help, a dry run, the lab, Tab."""

from __future__ import annotations

import pytest

from tests.integration.lab import Lab, Notebook


@pytest.fixture(scope="module")
def notebook(shared_lab: Lab) -> Notebook:
    return shared_lab.notebook()


@pytest.mark.parametrize(
    "cell", ["%%gpu-schedule --help", "%%gpu-schedule -h\n\n", "%gpu-schedule -h"]
)
def test_help_needs_no_body(notebook: Notebook, cell: str) -> None:
    run = notebook.run(cell)
    assert run.ok, run.error
    assert "--gpu-memory SIZE" in (run.result or "")


def test_a_dry_run_shows_the_plan_and_runs_nothing(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-schedule --dry-run --cpus 1\nnever = 1")
    assert run.ok, run.error
    assert (run.result or "").endswith("would ask for 1 core; nothing was run")
    run = notebook.run("%%gpu-schedule --dry-run --gpus 1\nnever = 1")
    assert run.result is not None
    assert "would ask for 1 GPU and " in run.result
    assert run.result.endswith("It can never run here: this host has no GPU")
    assert notebook.run("'never' in globals()").result == "False"


def test_what_never_fits_is_refused_with_the_largest_that_would(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-schedule --cpus 4096\nx = 1")
    assert run.reply["ename"] == "NeverFits"
    assert "4096" in run.error
    run = notebook.run("%%gpu-schedule --gpus 9\nx = 1")
    assert run.reply["ename"] == "NeverFits"


def test_the_lab_and_its_jobs_are_shown(notebook: Notebook) -> None:
    run = notebook.run("%gpu-status")
    assert run.ok, run.error
    assert "no GPU on this host" in (run.result or "")
    for number in range(6):
        assert notebook.run(f"%%gpu-schedule --name c{number}\nx = 1").ok
    few, whole = (notebook.run(f"%gpu-jobs{more}").result or "" for more in ("", " --all"))
    assert few.count(" done ") == 5
    assert few.endswith("1 more that ended before: %gpu-jobs --all")
    assert whole.count(" done ") == 6
    assert "takes --all or nothing" in notebook.run("%gpu-jobs all").error


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("%%gpu-sch", "%%gpu-schedule"),
        ("%%gpu-schedule --pri", "--priority"),
        ("%%gpu-schedule --priority ", "low"),
        ("%%gpu-schedule --cpus 2 --gp", "--gpus"),
    ],
)
def test_tab_completes_magics_options_and_values(
    notebook: Notebook, typed: str, offered: str
) -> None:
    message = notebook.client.complete(typed, len(typed))
    while (reply := notebook.client.get_shell_msg(timeout=60))["parent_header"][
        "msg_id"
    ] != message:
        pass
    assert offered in reply["content"]["matches"]
