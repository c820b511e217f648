"""What a cell does in its home, and what of it reaches the notebook."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agent.lab import Lab
from workbench.boundary import stage

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_pass_cell_is_done(lab: Lab) -> None:
    ran = await lab.run("pass")
    assert (ran.ending.outcome, ran.ending.detail) == ("done", "")
    assert ran.lines("stream") == []
    assert ran.ended()["outcome"] == "done"


async def test_what_a_cell_binds_comes_back_and_what_it_only_reads_does_not(lab: Lab) -> None:
    ran = await lab.run("y = x + 1\nz = [y]\nxs.append(3)", x=41, xs=[1])
    assert ran.ending.outcome == "done"
    assert lab.result(ran) == {"y": 42, "z": [42], "xs": [1, 3], "x": 41}


async def test_output_of_every_kind_comes_in_program_order(lab: Lab) -> None:
    source = """
import os, subprocess, sys
from IPython.display import HTML, display, clear_output
print("one")
print("two", file=sys.stderr)
display(HTML("<b>three</b>"))
os.write(1, b"four\\n")
subprocess.run(["echo", "five"])
os.write(2, b"six\\n")
print("seven", end="")
!echo eight
clear_output(wait=True)
print("nine")
42
"""
    ran = await lab.run(source)
    seen = []
    for line in ran.lines():
        match line["kind"]:
            case "stream" if seen and seen[-1][0] == line["name"]:
                seen[-1] = (line["name"], seen[-1][1] + line["text"])
            case "stream":
                seen.append((line["name"], line["text"]))
            case "display" | "result":
                seen.append((line["kind"], line["data"]["text/plain"]))
            case "clear":
                seen.append(("clear", line["wait"]))
    assert seen == [
        ("stdout", "one\n"),
        ("stderr", "two\n"),
        ("display", "<IPython.core.display.HTML object>"),
        ("stdout", "four\nfive\n"),
        ("stderr", "six\n"),
        ("stdout", "seveneight\n"),
        ("clear", True),
        ("stdout", "nine\n"),
        ("result", "42"),
    ]


async def test_a_display_can_be_updated_and_keeps_its_id(lab: Lab) -> None:
    source = "h = display('a', display_id=True)\nh.update('b')\ndel h"
    first, second = (await lab.run(source)).lines("display")
    assert (first["update"], second["update"]) == (False, True)
    assert first["transient"]["display_id"] == second["transient"]["display_id"] != ""


async def test_binary_displays_travel_as_base64(lab: Lab) -> None:
    source = "from IPython.display import Image\ndisplay(Image(data=b'\\x89PNG\\r\\n\\x1a\\n'))"
    (line,) = (await lab.run(source)).lines("display")
    assert line["data"]["image/png"].strip() == "iVBORw0KGgo="


async def test_progress_bars_keep_their_carriage_returns_and_text_its_letters(lab: Lab) -> None:
    source = r"""
import os, time
for i in range(3): print(f"\r{i}/3", end="")
for byte in "\né\U0001f600".encode():
    os.write(1, bytes([byte])); time.sleep(0.005)
os.write(1, b"\xff")
"""
    assert (await lab.run(source)).text() == "\r0/3\r1/3\r2/3\né\U0001f600\ufffd"


async def test_what_we_set_in_the_environment_is_not_the_cells_change(lab: Lab) -> None:
    ran = await lab.run("import os\nos.environ['MINE'] = '1'")
    _, crossing = lab._sent[ran.directory.name]
    (change,) = stage(crossing, ran.directory)._state.items()
    part, (before, now) = change
    assert (part, now.items() - before.items()) == ("environment", {("MINE", "1")})
    assert before.keys() - now.keys() == set()


async def test_a_last_expression_is_shown_and_bound_unless_a_semicolon_forbids_it(lab: Lab) -> None:
    ran = await lab.run("x = 20\nx + 1")
    assert [line["data"]["text/plain"] for line in ran.lines("result")] == ["21"]
    assert lab.result(ran)["_gpu_schedule_result"] == 21
    quiet = await lab.run("x = 20\nx + 1;")
    assert quiet.lines("result") == []
    nothing = await lab.run("None")
    assert nothing.lines("result") == []


async def test_shell_lines_and_magics_run_with_the_environment_of_the_lease(lab: Lab) -> None:
    source = """
got = !echo "$CUDA_VISIBLE_DEVICES|$GPU_WORKBENCH_LEASE"
word = "braces"
!echo {word} $word
!exit 3
code = _exit_code
%time n = sum(range(10))
"""
    ran = await lab.run(source)
    assert ran.ending.outcome == "done", ran.error()
    result = lab.result(ran)
    visible, mark = result["got"][0].split("|")
    assert visible == ""
    assert mark.startswith("L")
    assert ran.directory.name in mark
    assert (result["code"], result["n"]) == (3, 45)
    assert "braces braces" in ran.text()
    assert "Wall time" in ran.text()


async def test_top_level_await_shares_one_loop_between_statements(lab: Lab) -> None:
    source = """
import asyncio
task = asyncio.create_task(asyncio.sleep(0, "from the task"))
await asyncio.sleep(0); x = 1
said = await task
del task
"""
    result = lab.result(await lab.run(source))
    assert (result["x"], result["said"]) == (1, "from the task")


async def test_without_an_await_a_loop_runs_too_as_in_a_kernel(lab: Lab) -> None:
    source = """
import asyncio
done = []
async def work():
    await asyncio.sleep(0.01)
    done.append(1)
is_running = asyncio.get_running_loop().is_running()
asyncio.create_task(work());
"""
    ran = await lab.run(source)
    assert ran.ending.outcome == "done", ran.error()
    result = lab.result(ran)
    assert (result["is_running"], result["done"]) == (True, [1])
    refused = await lab.run("import asyncio\nasyncio.run(asyncio.sleep(0))")
    assert "cannot be called from a running event loop" in refused.ending.detail


async def test_an_error_shows_the_users_own_lines_and_only_them(lab: Lab) -> None:
    ran = await lab.run("def f():\n    return 1 / zero\n\nx = 1\nf()\ny = 2", zero=0)
    assert ran.ending.outcome == "failed"
    assert ran.ending.detail == "ZeroDivisionError: division by zero"
    (line,) = ran.lines("error")
    assert (line["etype"], line["text"]) == ("ZeroDivisionError", "division by zero")
    shown = lab.plain(ran.error())
    # The magic's own line is 1, so `f()` is line 6 of the user's cell, the division line 3.
    assert "Cell In[7], line 6" in shown
    assert "Cell In[7], line 3" in shown
    assert "return 1 / zero" in shown
    assert "home.py" not in shown
    assert lab.result(ran)["x"] == 1
    assert "y" not in lab.result(ran)


async def test_an_error_whose_text_cannot_be_made_is_still_an_error(lab: Lab) -> None:
    source = "class E(Exception):\n    def __str__(self): raise ValueError('no')\nraise E"
    ran = await lab.run(source)
    assert ran.ending.outcome == "failed"
    assert ran.ending.detail == "E: <its text cannot be made: ValueError>"


@pytest.mark.parametrize("end", ["exit()", "quit()", "import sys; sys.exit(3)", "raise SystemExit"])
async def test_leaving_ends_the_cell_as_an_error_and_keeps_what_was_before(
    lab: Lab, end: str
) -> None:
    ran = await lab.run(f"x = 1\n{end}\ny = 2")
    assert ran.ending.outcome == "failed"
    assert ran.ending.detail.startswith("SystemExit")
    assert lab.result(ran)["x"] == 1


async def test_input_is_refused_with_a_sentence(lab: Lab) -> None:
    ran = await lab.run("input('name? ')")
    assert ran.ending.outcome == "failed"
    assert "nobody to ask" in ran.ending.detail


async def test_progress_is_told_after_each_statement(lab: Lab) -> None:
    ran = await lab.run("a = 1\nb = 2\n\nc = 3")
    told = [(line["done"], line["total"], line["what"]) for line in ran.lines("progress")]
    assert told == [(1, 3, "line 2"), (2, 3, "line 3"), (3, 3, "line 5")]


async def test_classes_of_a_cell_are_those_of_main(lab: Lab) -> None:
    source = """
import pickle, sys
class Point:
    pass
same = pickle.loads(pickle.dumps(Point())).__class__ is Point
main = sys.modules["__main__"].Point is Point and Point.__module__ == "__main__"
del Point
"""
    result = lab.result(await lab.run(source))
    assert (result["same"], result["main"]) == (True, True)


async def test_files_that_a_cell_left_open_are_written_out(lab: Lab) -> None:
    ran = await lab.run("f = open(path, 'w')\nf.write('all of it')", path=str(lab.place / "left"))
    assert ran.ending.outcome == "done", ran.error()
    assert (lab.place / "left").read_text() == "all of it"


SURROGATE = "raise FileNotFoundError('bad\\udcff.txt')"


async def test_text_that_is_no_utf8_reaches_the_notebook_spelled_out(lab: Lab) -> None:
    source = "display({'text/plain': 'shown\\udcff'}, raw=True)\n" + SURROGATE
    job = await lab.stage(source)
    await lab.client.done(lab.m.Follow(job=job))
    lease = await lab.controller.grant(job)
    told = lab.m.LeaseEnding(outcome="failed", detail="FileNotFoundError: bad\\udcff.txt")
    assert (await lab.client.over(job)).ending == told
    assert await lab.controller.over(lease) == told
    ran = lab.ran(job)
    assert ran.lines("display")[0]["data"]["text/plain"] == "shown\\udcff"
    assert ran.lines("error")[0]["text"] == "bad\\udcff.txt"
    ran.error().encode()


@pytest.mark.parametrize(
    "hostile",
    [
        "lambda self: 1 / 0",
        "lambda self: print('looked') or type(self)",
    ],
)
async def test_an_object_that_minds_being_looked_at_costs_no_result(lab: Lab, hostile: str) -> None:
    source = f"def make():\n    class L: __class__ = property({hostile})\n"
    source += "    import builtins; builtins.kept_alive = [L()]\nmake()\nres = 42"
    ran = await lab.run(source)
    assert ran.ending.outcome == "done", ran.error()
    assert lab.result(ran)["res"] == 42
    assert ran.text() == ""


async def test_threads_and_processes_that_are_no_daemons_are_waited_for(lab: Lab) -> None:
    source = """
import threading, time, multiprocessing, concurrent.futures
def save(name):
    time.sleep(0.1)
    open(f"{path}/{name}", "w").write("all of it")
threading.Thread(target=save, args=("thread",)).start()
multiprocessing.get_context("fork").Process(target=save, args=("process",)).start()
pool = concurrent.futures.ThreadPoolExecutor(1)
_ = pool.submit(save, "pool")
del pool, _
import builtins; builtins.pool = concurrent.futures.ThreadPoolExecutor(1)
_ = builtins.pool.submit(save, "idle pool"); del _
"""
    ran = await lab.run(source, path=str(lab.place))
    assert ran.ending.outcome == "done", ran.error()
    for name in ("thread", "process", "pool", "idle pool"):
        assert (lab.place / name).read_text() == "all of it"
    assert "left running" not in ran.text("stderr")


async def test_a_thread_that_never_ends_can_be_interrupted_and_costs_no_result(lab: Lab) -> None:
    source = """
import threading, builtins
builtins.never = threading.Event()
threading.Thread(target=builtins.never.wait, name="the server").start()
x = 1
print("READY")
"""
    job, lease, _ = await lab.begin(source)
    await lab.until(lambda: "the server" in lab.ran(job).text("stderr"), "a word of the wait")
    await lab.client.done(lab.m.Interrupt(job=job))
    assert (await lab.controller.over(lease)).detail == "KeyboardInterrupt"
    assert lab.result(lab.ran(job))["x"] == 1


async def test_what_a_cell_registers_for_the_exit_runs(lab: Lab) -> None:
    source = """
import atexit
def last():
    with open(path, "w") as file: file.write("written at the exit")
atexit.register(last);
"""
    path = lab.place / "exit"
    assert (await lab.run(source, path=str(path))).ending.outcome == "done"
    assert path.read_text() == "written at the exit"


async def test_a_child_that_is_left_is_ended_and_named(lab: Lab) -> None:
    ran = await lab.run("import subprocess\npid = subprocess.Popen(['sleep', '600']).pid")
    pid = lab.result(ran)["pid"]
    assert f"what it left running: sleep (pid {pid})" in ran.text("stderr")
    assert lab.is_gone(pid)
    assert (await lab.run("x = 1")).text("stderr") == ""


async def test_a_task_that_nobody_awaits_for_long_is_cancelled_and_named(lab: Lab) -> None:
    source = "import asyncio\nasyncio.create_task(asyncio.sleep(600), name='forgotten');"
    ran = await lab.run(source)
    assert ran.ending.outcome == "done"
    assert "what nobody awaited: forgotten" in ran.text("stderr")


async def test_a_fork_that_runs_on_does_not_answer_for_the_home(lab: Lab) -> None:
    ran = await lab.run("import os\nchild = os.fork()\nx = 1")
    assert ran.ending.outcome == "done"
    assert lab.result(ran)["child"] > 0


async def test_numeric_libraries_get_the_leased_cores(lab: Lab) -> None:
    source = """
import os, numpy, threadpoolctl
counts = {p["num_threads"] for p in threadpoolctl.threadpool_info()}
told = os.environ["OMP_NUM_THREADS"]
"""
    ran = await lab.run(source, units={"cores": 2})
    assert ran.ending.outcome == "done", ran.error()
    result = lab.result(ran)
    assert (result["counts"], result["told"]) == ({2}, "2")


async def test_the_folder_and_the_umask_are_the_kernels(lab: Lab) -> None:
    before = os.umask(0o022)
    os.umask(before)
    ran = await lab.run("import os\ncwd = os.getcwd()\nmask = os.umask(0)\n_ = os.umask(mask)")
    result = lab.result(ran)
    assert (result["cwd"], result["mask"]) == (str(Path.cwd()), before)


async def test_a_fifty_megabyte_print_survives_and_no_process_swallows_it(lab: Lab) -> None:
    source = """
import os, resource
line = "x" * 999 + "\\n"
for _ in range(50_000): os.write(1, line.encode())
shim = os.getppid()
peak = next(l for l in open(f"/proc/{shim}/status") if l.startswith("VmHWM")).split()[1]
base = next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]
"""
    ran = await lab.run(source)
    assert ran.ending.outcome == "done", ran.error()
    assert ran.text() == ("x" * 999 + "\n") * 50_000
    result = lab.result(ran)
    assert int(result["peak"]) < int(result["base"]) + 20_000  # KiB
