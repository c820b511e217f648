"""What a cell puts in the place of what Workbench uses itself costs no result and no word."""

from __future__ import annotations

import pytest

from tests.agent.lab import Lab
from workbench.protocol.job_files import FAULT

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATCHES = [
    "import json; json.dumps = lambda *a, **k: 'patched'",
    "import json; json.JSONEncoder.default = lambda self, o: 'patched'",
    "import os; os.write = os.open = os.getpid = os._exit = os.fstat = None",
    "import os; os.fsync = os.fdopen = os.rename = os.unlink = None",
    "import time; time.sleep = time.time = None",
    "import signal; signal.pthread_sigmask = signal.signal = None",
    "import pickle, struct, mmap; pickle.dumps = pickle.Pickler = struct.pack = mmap.mmap = None",
    "import traceback; traceback.format_exception = traceback.format_exc = None",
    "import atexit, gc, threading; atexit._run_exitfuncs = gc.get_objects = None",
    "import builtins; builtins.open = builtins.sorted = None",
    "import threading; threading.Thread = None",
]


@pytest.mark.parametrize("patch", PATCHES)
async def test_a_patched_standard_library_costs_nothing(lab: Lab, patch: str) -> None:
    ran = await lab.run(f"print('before')\n{patch}\nx = 1\nprint('after')\nx")
    assert ran.ending.outcome == "done", (ran.ending, ran.text("stderr"), ran.error())
    assert ran.text() == "before\nafter\n"
    assert ran.text("stderr") == ""
    assert ran.lines("result")[0]["data"]["text/plain"] == "1"
    assert lab.result(ran)["x"] == 1


async def test_a_patch_holds_for_the_cell_and_for_what_it_registered(lab: Lab) -> None:
    source = """
import atexit, os
os.getlogin = lambda: "patched"
first = os.getlogin()
atexit.register(lambda: print(os.getlogin()));
"""
    ran = await lab.run(source)
    assert (lab.result(ran)["first"], ran.text()) == ("patched", "patched\n")


async def test_closing_every_descriptor_costs_no_result(lab: Lab) -> None:
    path = lab.place / "theirs"
    source = """
import os
print("before")
os.closerange(3, 200)
files = [open(path, "w") for _ in range(20)]
print("after")
for file in files: file.close()
del files
x = 1
x
"""
    ran = await lab.run(source, path=str(path))
    assert ran.ending.outcome == "done", (ran.ending, ran.text("stderr"), ran.error())
    assert ran.text() == "before\nafter\n"
    assert ran.text("stderr") == ""
    assert ran.lines("result")[0]["data"]["text/plain"] == "1"
    assert lab.result(ran)["x"] == 1
    assert path.read_text() == ""


async def test_a_fault_of_ours_is_one_sentence_and_its_traceback_a_file(lab: Lab) -> None:
    source = "from workbench.boundary import Arrival\nArrival.pack_back = None"
    ran = await lab.run(source)
    assert ran.ending.outcome == "failed"
    assert ran.text("stderr") == ""
    assert ran.ending.detail.startswith("a fault of Workbench's own")
    assert "'NoneType' object is not callable" in ran.ending.detail
    fault = ran.directory / FAULT
    assert str(fault) in ran.ending.detail
    assert "Traceback" in fault.read_text()
