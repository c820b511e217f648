"""Kernel sessions: their zygotes, and what happens when a kernel goes away."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.agent.lab import MakeLab

if TYPE_CHECKING:
    import pytest

SHORT = ("--reattach-s", "0.3", "--look-s", "0.05")


async def test_a_zygote_has_imported_what_the_notebook_had_and_has_one_thread(
    make_lab: MakeLab,
) -> None:
    lab = await make_lab(modules=["numpy", "numpy.linalg", "json", "not_there_at_all"])
    source = "import sys, os\nhas = 'numpy.linalg' in sys.modules\nppid = os.getppid()"
    ran = await lab.run(source)
    assert lab.result(ran)["has"] is True
    (zygote,) = lab.zygotes()
    assert len(list(Path(f"/proc/{zygote}/task").iterdir())) == 1


async def test_the_users_own_files_are_never_imported_by_the_zygote(
    make_lab: MakeLab, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("open(__file__ + '.ran', 'a').write('x')\n")
    (tmp_path / "json.py").write_text("raise SystemExit('shadow')\n")
    lab = await make_lab(modules=["mine"], kernel_path=[str(tmp_path)])
    ran = await lab.run("import sys\nhas = 'mine' in sys.modules\nimport mine; del mine")
    assert ran.ending.outcome == "done", ran.error()
    assert lab.result(ran)["has"] is False
    assert (tmp_path / "mine.py.ran").read_text() == "x"


async def test_a_package_that_starts_a_thread_spoils_its_zygote_and_the_next_leaves_it_out(
    make_lab: MakeLab, tmp_path: Path
) -> None:
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "threaded.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    (site / "good.py").write_text("")
    (site / "deadly.py").write_text("import os; os.kill(os.getpid(), 9)\n")
    lab = await make_lab(modules=["threaded", "good"], kernel_path=[str(site)])
    source = "import sys\nseen = [n for n in ('threaded', 'good') if n in sys.modules]"
    ran = await lab.run(source)
    assert lab.result(ran)["seen"] == ["good"]
    # What the zygote left out the cell imports by itself, threads and all.
    ran = await lab.run("import threaded, threading\nn = threading.active_count()\ndel threaded")
    assert lab.result(ran)["n"] == 2
    await lab.client.done(lab.m.Warm(session=lab.session, modules=["deadly"]))
    assert (await lab.run("x = 1")).ending.outcome == "done"


async def test_more_packages_are_imported_on_request_into_the_same_zygote(
    make_lab: MakeLab,
) -> None:
    lab = await make_lab()
    await lab.client.done(lab.m.Warm(session=lab.session, modules=[]))
    before = lab.zygotes()
    await lab.client.done(lab.m.Warm(session=lab.session, modules=["cloudpickle"]))
    assert lab.zygotes() == before
    answer = await lab.client.ask(lab.m.Warm(session="0" * 32, modules=[]))
    assert answer.error == "NotHere"


async def test_a_python_that_is_not_there_is_named_and_the_agent_goes_on(make_lab: MakeLab) -> None:
    lab = await make_lab(python="/nowhere/bin/python")
    ran = await lab.run("x = 1")
    assert ran.ending.outcome == "failed"
    assert "/nowhere/bin/python" in ran.ending.detail


async def test_a_python_without_workbench_says_so(make_lab: MakeLab) -> None:
    lab = await make_lab(python="/bin/sh")
    ran = await lab.run("x = 1")
    assert ran.ending.outcome == "failed"
    assert "/bin/sh cannot run jobs" in ran.ending.detail


async def test_a_kernel_that_stays_away_loses_its_jobs_but_not_the_detached_ones(
    make_lab: MakeLab,
) -> None:
    lab = await make_lab(*SHORT)
    kept = await lab.stage("x = 1", detach=True)
    dropped, lease, _ = await lab.begin("print('READY')\nimport time; time.sleep(600)")
    (zygote,) = lab.zygotes()
    await lab.client.close()
    await lab.until(lambda: lab.controller.cancelled)
    assert {one.job for one in lab.controller.cancelled} == {dropped}
    await lab.controller.stop_lease(lease, dropped)
    await lab.controller.over(lease)
    # The detached one runs without its kernel, also after the agent has forgotten the session.
    os.kill(zygote, 9)
    os.kill(lab.agent_pid, 9)
    await lab.until(lambda: len(lab.controller.attached) == 2)
    lease = await lab.controller.grant(kept)
    assert (await lab.controller.over(lease)).outcome == "done"
    await lab.until(lambda: lab.zygotes() == [])


async def test_a_kernel_that_comes_back_in_time_keeps_its_jobs(make_lab: MakeLab) -> None:
    lab = await make_lab(*SHORT)
    _, lease, _ = await lab.begin("print('READY')\nimport time; time.sleep(0.6)")
    await lab.client.close()
    lab.client = await lab.connect()
    await lab.client.done(lab.opening())
    assert (await lab.controller.over(lease)).outcome == "done"
    assert lab.controller.cancelled == []


async def test_a_followed_job_is_not_cancelled_for_want_of_its_kernel(make_lab: MakeLab) -> None:
    lab = await make_lab(*SHORT)
    job, _, _ = await lab.begin("print('READY')\nimport time; time.sleep(0.8)")
    follower = await lab.connect()
    await follower.done(lab.m.Follow(job=job))
    await lab.client.close()
    assert (await follower.over(job)).ending.outcome == "done"
    assert lab.controller.cancelled == []
    await follower.close()


async def test_staged_jobs_that_the_controller_does_not_know_are_dropped(make_lab: MakeLab) -> None:
    lab = await make_lab("--staged-s", "0.2", "--look-s", "0.05")
    known = await lab.stage("x = 1")
    lab.controller.live = [lab.view(known)]
    unknown = await lab.stage("x = 2")
    stray = lab.prepare("x = 3")
    follower = await lab.connect()
    await follower.done(lab.m.Follow(job=unknown))
    assert (await follower.over(unknown)).ending.outcome == "expired"
    await lab.until(lambda: not (lab.jobs / unknown).exists())
    await lab.until(lambda: not (lab.jobs / stray).exists())
    assert (lab.jobs / known).exists()
    await follower.close()


async def test_an_agent_that_nobody_needs_ends_with_its_launcher(make_lab: MakeLab) -> None:
    lab = await make_lab("--idle-s", "0.2", *SHORT)
    assert (await lab.run("x = 1")).ending.outcome == "done"
    await lab.client.close()
    await lab.until(lambda: lab.processes("workbench.agent") == [])


async def test_a_session_of_a_kernel_environment_has_that_environment(
    make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MINE", "yes")
    lab = await make_lab()
    source = """
import os
got = [os.environ.get(name) for name in ("MINE", "OMP_NUM_THREADS", "MKL_NUM_THREADS")]
"""
    ran = await lab.run(source, units={"cores": 2})
    assert lab.result(ran)["got"] == ["yes", "1", "2"]


async def test_two_sessions_have_a_zygote_each(make_lab: MakeLab) -> None:
    lab = await make_lab()
    await lab.client.done(lab.m.Warm(session=lab.session, modules=[]))
    await lab.client.done(lab.opening(other := secrets.token_hex(16)))
    await lab.client.done(lab.m.Warm(session=other, modules=[]))
    assert len(lab.zygotes()) == 2


async def test_an_environment_and_folders_that_are_no_utf8_arrive_as_they_are(
    make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "bad\udcff"
    folder.mkdir()
    (folder / "mine.py").write_text("x = 7\n")
    monkeypatch.setenv("RAW\udcfe", "a\udcff")
    lab = await make_lab(cwd=str(folder), kernel_path=[str(folder)])
    source = "import os\nraw = os.environb[b'RAW\\xfe']\nfrom mine import x"
    ran = await lab.run(source)
    assert ran.ending.outcome == "done", ran.error()
    result = lab.result(ran)
    assert (result["raw"], result["x"]) == (b"a\xff", 7)
    (zygote,) = lab.zygotes()
    assert Path(f"/proc/{zygote}/cwd").readlink() == folder


async def test_a_folder_that_was_removed_is_no_obstacle_and_no_other_takes_its_place(
    make_lab: MakeLab,
) -> None:
    lab = await make_lab(cwd="")
    await lab.client.done(lab.m.Warm(session=lab.session, modules=[]))
    (zygote,) = lab.zygotes()
    assert str(Path(f"/proc/{zygote}/cwd").readlink()).endswith("(deleted)")


async def test_when_the_launcher_ends_no_zygote_is_left_and_running_jobs_go_on(
    make_lab: MakeLab,
) -> None:
    lab = await make_lab()
    _, _, shim = await lab.begin("print('READY')\nimport time; time.sleep(600)")
    await lab.client.done(lab.opening(other := secrets.token_hex(16)))
    await lab.client.done(lab.m.Warm(session=other, modules=[]))
    assert len(lab.zygotes()) == 2
    (launcher,) = lab.processes("workbench.agent.launcher")
    os.kill(launcher, signal.SIGTERM)
    await lab.until(lambda: lab.zygotes() == [], "the end of the zygotes")
    assert not lab.is_gone(shim)


async def test_a_zygote_ends_soon_after_its_kernel_where_no_job_needs_it(make_lab: MakeLab) -> None:
    kernel = subprocess.Popen(["sleep", "600"])  # noqa: ASYNC220  (it does not block)
    lab = await make_lab("--kernel-gone-s", "0.1", kernel_pid=kernel.pid)
    await lab.client.done(lab.m.Warm(session=lab.session, modules=[]))
    assert len(lab.zygotes()) == 1
    kernel.kill()
    kernel.wait()
    await lab.client.close()
    await lab.until(lambda: lab.zygotes() == [], "the end of the zygote")


async def test_an_ended_job_keeps_nothing_of_the_kernels_environment(make_lab: MakeLab) -> None:
    lab = await make_lab()
    job, lease, _ = await lab.begin("print('READY')\nimport time; time.sleep(600)")
    staged = lab.jobs / job / "staged.json"
    assert "XDG_RUNTIME_DIR" in json.loads(staged.read_text())["opening"]["env"]
    await lab.controller.stop_lease(lease, job)
    await lab.controller.over(lease)
    assert json.loads(staged.read_text())["opening"]["env"] == {}


async def test_of_ended_jobs_only_the_latest_are_kept(make_lab: MakeLab) -> None:
    lab = await make_lab("--keep-jobs", "2", "--fetch-s", "0")
    ran = [await lab.run("x = 1") for _ in range(4)]
    detached = await lab.stage("x = 1", detach=True)
    await lab.controller.over(await lab.controller.grant(detached))
    await lab.until(lambda: [one.directory.exists() for one in ran] == [False] * 2 + [True] * 2)
    assert (lab.jobs / detached).exists()
