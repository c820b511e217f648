"""Any process may be killed at any moment: nothing is lost, nothing runs twice."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from tests.agent.lab import Lab, MakeLab
from workbench.agent.runner import UNWATCHED

if TYPE_CHECKING:
    import pytest

WAITING = """
import os, time
open(path, "a").write("started\\n")
print("READY")
while not os.path.exists(path + ".go"): time.sleep(0.01)
print("went on")
x = 1
"""


def go(lab: Lab, path: Path) -> None:
    (lab.place / f"{path}.go").touch()


async def test_a_killed_home_fails_its_job_and_runs_nothing_again(make_lab: MakeLab) -> None:
    lab = await make_lab()
    path = lab.place / "home"
    _, lease, shim = await lab.begin(WAITING, path=str(path))
    (home,) = lab.children(shim)
    os.kill(home, signal.SIGKILL)
    assert (await lab.controller.over(lease)).outcome == "killed"
    assert path.read_text() == "started\n"


async def test_a_killed_shim_takes_its_whole_tree_along(make_lab: MakeLab) -> None:
    lab = await make_lab()
    path = lab.place / "shim"
    source = """
import os, signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
a = subprocess.Popen(["sleep", "600"])                                # same session
b = subprocess.Popen(["setsid", "sleep", "600"])                      # marked by its environment
print("READY", os.getpid(), a.pid, b.pid)
time.sleep(600)
"""
    job, lease, shim = await lab.begin(source, path=str(path))
    tree = [int(word) for word in lab.ran(job).text().split()[1:]]
    await lab.client.done(lab.m.Follow(job=job))
    os.kill(shim, signal.SIGKILL)
    ending = await lab.controller.over(lease)
    assert (ending.outcome, ending.detail) == ("lost", UNWATCHED)
    assert [pid for pid in tree if not lab.is_gone(pid)] == []
    assert lab.ran(job).ended()["outcome"] == "lost"
    assert (await lab.client.over(job)).ending == ending


async def test_a_killed_agent_comes_back_and_takes_its_running_job_up_again(
    make_lab: MakeLab,
) -> None:
    lab = await make_lab()
    path = lab.place / "agent"
    job, lease, shim = await lab.begin(WAITING, path=str(path))
    first = lab.agent_pid
    os.kill(first, signal.SIGKILL)
    lab.client = await lab.connect()
    assert lab.agent_pid != first
    await lab.until(lambda: len(lab.controller.attached) == 2)
    assert [held.lease for held in lab.controller.attached[1].leases] == [lease]
    await lab.controller.running(lease)
    assert lab.shim(job) == shim
    await lab.client.done(lab.m.Follow(job=job))
    go(lab, path.name)
    over = await lab.client.over(job)
    assert over.ending.outcome == "done"
    assert "went on" in lab.ran(job).text()
    advanced = [one for one in lab.client.pushes if isinstance(one, lab.m.Advanced)]
    assert advanced[-1].size_bytes == (lab.ran(job).directory / "output.jsonl").stat().st_size
    assert path.read_text() == "started\n"


async def test_a_job_that_ends_while_no_agent_lives_is_reported_by_the_next(
    make_lab: MakeLab,
) -> None:
    lab = await make_lab()
    job, lease, _ = await lab.begin(WAITING, path=str(lab.place / "alone"))
    (launcher,) = lab.processes("workbench.agent.launcher")
    os.kill(launcher, signal.SIGKILL)
    await lab.until(lambda: lab.is_gone(lab.agent_pid))
    go(lab, "alone")
    await lab.until(lambda: lab.ran(job).ended())
    assert lab.controller.ending(lease) is None
    await lab.start_agent()
    assert (await lab.controller.over(lease)).outcome == "done"
    (held,) = lab.controller.attached[-1].leases
    assert (held.lease, held.ended.outcome) == (lease, "done")


async def test_a_killed_launcher_loses_no_running_job_and_the_next_agent_stops_it(
    make_lab: MakeLab,
) -> None:
    lab = await make_lab()
    job, lease, shim = await lab.begin(WAITING, path=str(lab.place / "launcher"))
    (launcher,) = lab.processes("workbench.agent.launcher")
    os.kill(launcher, signal.SIGKILL)
    await lab.until(lambda: lab.is_gone(lab.agent_pid))
    assert not lab.is_gone(shim)
    await lab.start_agent()
    await lab.controller.stop_lease(lease, job)
    assert (await lab.controller.over(lease)).outcome == "cancelled"
    assert lab.is_gone(shim)


async def test_a_shim_that_dies_while_no_agent_lives_is_lost_and_its_tree_is_ended(
    make_lab: MakeLab,
) -> None:
    lab = await make_lab()
    source = """
import os, subprocess
child = subprocess.Popen(["setsid", "sleep", "600"])
print("READY", os.getpid(), child.pid)
child.wait()
"""
    job, lease, shim = await lab.begin(source)
    tree = [int(word) for word in lab.ran(job).text().split()[1:]]
    (launcher,) = lab.processes("workbench.agent.launcher")
    os.kill(launcher, signal.SIGKILL)
    await lab.until(lambda: lab.is_gone(lab.agent_pid))
    os.kill(shim, signal.SIGKILL)
    await lab.until(lambda: lab.is_gone(tree[0]))  # The home dies with its shim, unasked.
    await lab.start_agent()
    assert (await lab.controller.over(lease)).detail == UNWATCHED
    assert [pid for pid in tree if not lab.is_gone(pid)] == []


async def test_a_killed_zygote_leaves_its_jobs_alone_and_the_next_job_gets_a_new_one(
    make_lab: MakeLab,
) -> None:
    lab = await make_lab()
    _, lease, _ = await lab.begin(WAITING, path=str(lab.place / "zygote"))
    (zygote,) = lab.zygotes()
    os.kill(zygote, signal.SIGKILL)
    assert (await lab.run("x = 1")).ending.outcome == "done"
    assert lab.zygotes() != [zygote]
    go(lab, "zygote")
    assert (await lab.controller.over(lease)).outcome == "done"


async def test_the_zygote_outlives_its_agent_and_serves_the_next(make_lab: MakeLab) -> None:
    lab = await make_lab()
    assert (await lab.run("x = 1")).ending.outcome == "done"
    before = lab.zygotes()
    os.kill(lab.agent_pid, signal.SIGKILL)
    lab.client = await lab.connect()
    await lab.client.done(lab.opening())
    assert (await lab.run("x = 1")).ending.outcome == "done"
    assert lab.zygotes() == before


async def test_a_lost_controller_is_told_on_its_return_what_it_missed(make_lab: MakeLab) -> None:
    lab = await make_lab()
    job, lease, _ = await lab.begin(WAITING, path=str(lab.place / "controller"))
    await lab.controller.stop()
    go(lab, "controller")
    await lab.until(lambda: lab.ran(job).ended())
    await lab.controller.start()
    assert (await lab.controller.over(lease)).outcome == "done"
    # Once it has understood, it is told no more.
    await lab.until((lab.jobs / job / "reported").exists)
    await lab.controller.stop()
    await lab.controller.start()
    await lab.until(lambda: len(lab.controller.attached) == 3)
    assert lab.controller.attached[-1].leases == []


async def test_a_granted_job_whose_agent_dies_before_the_fork_runs_once(make_lab: MakeLab) -> None:
    lab = await make_lab()
    path = lab.place / "once"
    job = await lab.stage(WAITING, path=str(path))
    await lab.client.done(lab.m.Warm(session=lab.session, modules=[]))
    (zygote,) = lab.zygotes()
    os.kill(zygote, signal.SIGSTOP)
    lease = await lab.controller.grant(job)
    await lab.until((lab.jobs / job / "lease.json").exists)
    await lab.connect()  # The agent has asked the zygote by now.
    os.kill(lab.agent_pid, signal.SIGKILL)
    lab.client = await lab.connect()
    await lab.controller.grant(job, lease=lease)
    os.kill(zygote, signal.SIGCONT)
    await lab.controller.running(lease)
    go(lab, "once")
    assert (await lab.controller.over(lease)).outcome == "done"
    assert path.read_text() == "started\n"


async def test_a_users_own_controller_is_started_again_when_a_job_needs_it(
    make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = await make_lab()
    (launcher,) = lab.processes("workbench.agent.launcher")
    os.kill(launcher, signal.SIGKILL)
    await lab.until(lambda: lab.is_gone(lab.agent_pid))
    monkeypatch.delenv("WORKBENCH_CONTROLLER")  # From now on there is no lab.
    await lab.start_agent()
    log = lab.runtime / "agent.log"
    await lab.until(lambda: "no controller" in log.read_text())
    assert lab.processes("workbench.controller") == []
    await lab.stage("pass")
    await lab.until((lab.runtime / "controller.sock").exists)
    assert len(lab.processes("workbench.controller")) == 1
