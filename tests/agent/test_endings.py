"""How jobs end, and that nobody of theirs is left."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from tests.agent.lab import Lab
from workbench.agent.shim import out_of_memory_kills

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAEMONS = """
import os, signal, subprocess, sys, time
def daemon(ignore):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if ignore:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            with open(path, "a") as file:
                file.write(f"{os.getpid()}\\n")
            time.sleep(600)
        os._exit(0)
    os.wait()
daemon(False); daemon(True)
for clean in ("env -i ", ""):
    script = f"trap '' TERM; echo $$ >> {path}; while :; do sleep 1; done"
    subprocess.Popen(["setsid", "sh", "-c", f"exec {clean}sh -c \\"{script}\\""])
while len(open(path).read().split()) < 4: time.sleep(0.01)
print("READY")
"""


def left_by(lab: Lab, path: Path) -> list[int]:
    pids = [int(pid) for pid in path.read_text().split()]
    assert len(pids) == 4
    return [pid for pid in pids if not lab.is_gone(pid)]


async def test_daemons_that_a_finished_cell_leaves_behind_are_gone_before_its_lease_is(
    lab: Lab,
) -> None:
    path = lab.place / "finished"
    ran = await lab.run(DAEMONS, path=str(path))
    assert ran.ending.outcome == "done", ran.error()
    assert left_by(lab, path) == []


async def test_a_stop_ends_the_whole_tree_whoever_forks_twice_or_ignores_term(lab: Lab) -> None:
    path = lab.place / "stopped"
    job, lease, shim = await lab.begin(DAEMONS + "time.sleep(600)", path=str(path))
    await lab.controller.stop_lease(lease, job)
    ending = await lab.controller.over(lease)
    assert ending.outcome == "cancelled"
    assert left_by(lab, path) == []
    assert lab.is_gone(shim)


async def test_a_stop_is_told_with_its_outcome_and_reason(lab: Lab) -> None:
    job, lease, _ = await lab.begin("print('READY')\nimport time; time.sleep(600)")
    await lab.client.done(lab.m.Follow(job=job))
    reason = "it ran longer than its limit of 3 s"
    await lab.controller.stop_lease(lease, job, reason, outcome="timed out")
    told = lab.m.LeaseEnding(outcome="timed out", detail=reason)
    assert await lab.controller.over(lease) == told
    assert (await lab.client.over(job)).ending == told
    assert lab.ran(job).ended()["detail"] == reason


async def test_a_want_of_memory_is_counted_where_the_host_counts_it(tmp_path: Path) -> None:
    file = tmp_path / "vmstat"
    assert out_of_memory_kills(file) is None
    file.write_text("nr_free_pages 7\n")
    assert out_of_memory_kills(file) is None
    file.write_text("nr_free_pages 7\noom_kill 3\n")
    assert out_of_memory_kills(file) == 3


async def test_children_that_exit_on_term_are_given_the_time_to(lab: Lab) -> None:
    source = """
import signal, sys, time
def leave(*_):
    time.sleep(0.1); print("goodbye", flush=True); sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print("READY"); time.sleep(600)
"""
    job, lease, _ = await lab.begin(source)
    await lab.controller.stop_lease(lease, job)
    assert (await lab.controller.over(lease)).outcome == "cancelled"
    assert "goodbye" in lab.ran(job).text()


async def test_a_cell_that_kills_its_process_is_killed_for_no_want_of_memory_and_its_log_kept(
    lab: Lab,
) -> None:
    ran = await lab.run("import os\nprint('before')\nos.kill(os.getpid(), 9)")
    assert ran.ending.outcome == "killed"
    assert ran.ending.detail == "killed (SIGKILL)"
    assert ran.text() == "before\n"


async def test_a_crash_is_named_by_its_signal(lab: Lab) -> None:
    ran = await lab.run("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    assert (ran.ending.outcome, ran.ending.detail) == ("killed", "killed (SIGSEGV)")


async def test_a_process_that_exits_by_itself_leaves_no_result(lab: Lab) -> None:
    ran = await lab.run("import os\nos._exit(0)")
    assert ran.ending.outcome == "failed"
    assert "exit code 0" in ran.ending.detail


async def test_an_interrupt_keeps_the_statements_that_were_finished(lab: Lab) -> None:
    job, lease, _ = await lab.begin("x = 1\nimport time\nprint('READY') or time.sleep(600)\ny = 2")
    await lab.client.done(lab.m.Interrupt(job=job))
    ending = await lab.controller.over(lease)
    assert (ending.outcome, ending.detail) == ("failed", "KeyboardInterrupt")
    result = lab.result(lab.ran(job))
    assert result["x"] == 1
    assert "y" not in result
    assert "line 4" in lab.plain(lab.ran(job).error())


async def test_an_interrupt_reaches_an_await_and_a_shell_line(lab: Lab) -> None:
    for wait in ("import asyncio; await asyncio.sleep(600)", "!sleep 600; true"):
        job, lease, _ = await lab.begin(f"print('READY')\n{wait}")
        await lab.client.done(lab.m.Interrupt(job=job))
        assert (await lab.controller.over(lease)).detail == "KeyboardInterrupt"


async def test_a_cpu_lease_hides_every_gpu(lab: Lab) -> None:
    ran = await lab.run("import os\nseen = os.environ['CUDA_VISIBLE_DEVICES']")
    assert lab.result(ran)["seen"] == ""


async def test_a_simulated_gpu_is_named_and_hides_every_real_one(lab: Lab) -> None:
    source = """
import os
seen = os.environ["CUDA_VISIBLE_DEVICES"]
sim = os.environ["GPU_WORKBENCH_SIMULATED"]
"""
    ran = await lab.run(source, units={"gpus": ["SIM-1"], "simulated": True})
    assert (lab.result(ran)["seen"], lab.result(ran)["sim"]) == ("", "SIM-1")


async def test_a_gpu_lease_shows_its_gpus_and_holds_their_locks_to_the_end(lab: Lab) -> None:
    uuids = [f"GPU-{os.getpid()}-{n}" for n in (1, 2)]
    source = "import os, time\nprint('READY', os.environ['CUDA_VISIBLE_DEVICES'])\ntime.sleep(600)"
    job = await lab.stage(source)
    lease = await lab.controller.grant(job, gpus=uuids)
    await lab.ready(job)
    assert lab.ran(job).text().split()[1] == ",".join(uuids)
    for uuid in uuids:
        with socket.socket(socket.AF_UNIX) as asker:
            asker.connect(f"\0gpu-workbench/{uuid}")
    await lab.controller.stop_lease(lease, job)
    await lab.controller.over(lease)
    for uuid in uuids:
        with socket.socket(socket.AF_UNIX) as taker:
            taker.bind(f"\0gpu-workbench/{uuid}")


async def test_a_gpu_that_somebody_else_holds_is_never_waited_for(lab: Lab) -> None:
    uuid = f"GPU-{os.getpid()}-3"
    with socket.socket(socket.AF_UNIX) as holder:
        holder.bind(f"\0gpu-workbench/{uuid}")
        holder.listen()
        ran = await lab.run("raise AssertionError('must not run')", units={"gpus": [uuid]})
    assert ran.ending.outcome == "failed"
    assert ran.ending.detail == f"GPU {uuid} is held outside by uid {os.getuid()}"
    assert ran.lines() == []


async def test_the_holder_of_a_lock_answers_any_number_of_questions(lab: Lab) -> None:
    uuid = f"GPU-{os.getpid()}-4"
    job = await lab.stage("print('READY')\nimport time; time.sleep(600)")
    lease = await lab.controller.grant(job, gpus=[uuid])
    await lab.ready(job)
    for _ in range(600):
        with socket.socket(socket.AF_UNIX) as asker:
            asker.connect(f"\0gpu-workbench/{uuid}")
    await lab.controller.stop_lease(lease, job)
    await lab.controller.over(lease)


async def test_the_tree_carries_its_lease_where_others_can_read_it(lab: Lab) -> None:
    source = """
import os, subprocess
print("READY", os.getppid(), os.getpid(), subprocess.Popen(["sleep", "600"]).pid)
__import__("time").sleep(600)
"""
    job, lease, shim = await lab.begin(source)
    pids = [int(word) for word in lab.ran(job).text().split()[1:]]
    assert pids[0] == shim
    for pid in pids:
        environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        marks = [one for one in environ if one.startswith(b"GPU_WORKBENCH_LEASE=")]
        assert marks == [f"GPU_WORKBENCH_LEASE={lease}/{job}".encode().ljust(84, b".")]
    os.kill(pids[1], signal.SIGTERM)
    assert (await lab.controller.over(lease)).outcome == "killed"
    assert lab.is_gone(pids[2])
