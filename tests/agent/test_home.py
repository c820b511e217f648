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
got = !echo "$CUDA_VISIBLE_DEVICES|$FROM_SPEC|$GPU_WORKBENCH_LEASE"
word = "braces"
!echo {word} $word
!exit 3
code = _exit_code
%time n = sum(range(10))
"""
    ran = await lab.run(source)
    assert ran.ending.outcome == "done", ran.error()
    result = lab.result(ran)
    visible, from_spec, mark = result["got"][0].split("|")
    assert (visible, from_spec) == ("", "yes")
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


async def test_without_an_await_a_cell_may_run_a_loop_of_its_own(lab: Lab) -> None:
    ran = await lab.run("import asyncio\nx = asyncio.run(asyncio.sleep(0, 5))")
    assert lab.result(ran)["x"] == 5


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
