"""A cell ends as a Python program does: what runs then runs, and nobody is waited for in vain."""

from __future__ import annotations

import pytest

from tests.agent.lab import Lab

pytestmark = pytest.mark.asyncio(loop_scope="module")

LEFT_OPEN = {
    "joblib": """
from joblib import Parallel, delayed
got = Parallel(n_jobs=2)(delayed(abs)(i) for i in [-1, 2])
""",
    "an executor of processes": """
import concurrent.futures, multiprocessing
context = multiprocessing.get_context("forkserver")
executor = concurrent.futures.ProcessPoolExecutor(2, mp_context=context)
got = list(executor.map(abs, [-1, 2]))
""",
    "an executor of threads": """
import concurrent.futures
executor = concurrent.futures.ThreadPoolExecutor(2)
got = list(executor.map(abs, [-1, 2]))
""",
    "a pool": """
import multiprocessing
pool = multiprocessing.get_context("fork").Pool(2)
got = pool.map(abs, [-1, 2])
""",
    "a manager": """
import multiprocessing
manager = multiprocessing.get_context("fork").Manager()
got = list(manager.list([1, 2]))
""",
    "a queue": """
import multiprocessing
queue = multiprocessing.Queue()
queue.put(1); queue.put(2)
got = [1, 2]
""",
    "shared memory": """
from multiprocessing.shared_memory import SharedMemory
memory = SharedMemory(create=True, size=2)
got = [1, 2]
""",
}


@pytest.mark.parametrize("source", LEFT_OPEN.values(), ids=LEFT_OPEN)
async def test_what_a_library_keeps_running_ends_with_the_cell(lab: Lab, source: str) -> None:
    ran = await lab.run(source)
    assert ran.ending.outcome == "done", (ran.error(), ran.text("stderr"))
    assert lab.result(ran)["got"] == [1, 2]
    assert "waits for" not in ran.text("stderr")
    assert "left running" not in ran.text("stderr")


async def test_what_python_itself_would_call_at_its_end_is_called(lab: Lab) -> None:
    source = """
import threading
go = threading.Event()
threading._register_atexit(go.set)
threading.Thread(target=go.wait).start()
del go
"""
    ran = await lab.run(source)
    assert ran.ending.outcome == "done", ran.error()


async def test_what_was_put_into_a_queue_last_arrives_before_the_end(lab: Lab) -> None:
    source = """
import multiprocessing, os
def save(queue):
    with open(path, "w") as file: file.write(queue.get())
context = multiprocessing.get_context("fork")
queue = context.Queue()
context.Process(target=save, args=(queue,)).start()
queue.put("x" * 1_000_000)
"""
    path = lab.place / "queued"
    ran = await lab.run(source, path=str(path))
    assert ran.ending.outcome == "done", ran.error()
    assert path.stat().st_size == 1_000_000


async def test_a_thread_that_fails_after_the_cell_is_heard_by_the_cells_own_hook(lab: Lab) -> None:
    source = """
import threading
def fail(go):
    go.wait()
    raise ValueError("too late")
threading.excepthook = lambda failure: print("heard:", failure.exc_value)
go = threading.Event()
threading._register_atexit(go.set)
threading.Thread(target=fail, args=(go,)).start()
del go
"""
    ran = await lab.run(source)
    assert ran.ending.outcome == "done", ran.error()
    assert (ran.text(), ran.text("stderr")) == ("heard: too late\n", "")
