"""`make bench-cell`: what a scheduled cell costs over the same work done without Workbench.

Held to a target:

* 8 independent busy loops of 0.2 s on 2 workers, through a real kernel, controller and agent, against
  hand-written `dask.delayed` on an equal cluster that is already up. Ours includes what it starts.
* A cell of `pass`, warm, against the same in the kernel. There is no work to compare, so `ratio` is
  the part of a budget of 150 ms that is used: (ours - peer) / 150.

Only reported, where nothing of Workbench runs yet, each in a fresh lab:

* The first cell of `pass`, against the kernel; `ratio` is the part of 3 s, the aim, that is used.
* The first cell of those busy loops, against hand-written Dask that starts its cluster then.
* The first cell of tasks on 2 GPUs, against a LocalCUDACluster that is started then: real dask-cuda
  workers on stand-ins for the driver's libraries.

Ours and the other are measured by turns, several times, and the medians compared: a busy machine
slows both. The last line is JSON: `ratio` and `target` are those of the first check.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.result import Check, compared, report
from tests.integration import gpu_tasks
from tests.integration.lab import Lab, Notebook, lab
from tests.stand_ins.build import build
from tests.stand_ins.world import StubWorld

WORKERS = 2
TASKS = 8
TASK_S = 0.2
ROUNDS = 7
FIRST_ROUNDS = 3
RATIO_TARGET = 1.3
PASS_BUDGET_MS = 150.0
FIRST_AIM_S = 3.0

BURN = """
def burn(count):
    total = 0
    for i in range(count):
        total += i
    return total
"""
CALIBRATE = """
import time
def once(count):
    start = time.perf_counter()
    burn(count)
    return time.perf_counter() - start
print(int({task_s} * 10**6 / min(once(10**6) for _ in range(5))))
"""
CLUSTER = """
import dask
from distributed import Client, LocalCluster, Security
cluster = LocalCluster(
    n_workers={workers}, threads_per_worker=1, protocol="tls", security=Security.temporary(),
    dashboard_address=None,
)
client = Client(cluster)
delayed = dask.delayed(burn, pure=False)
def both():
    return dask.compute(*[delayed(count) for _ in range({tasks})])
totals = both()
"""
CUDA_CLUSTER = """
from dask_cuda import LocalCUDACluster
from distributed import Client, Security
cluster = LocalCUDACluster(
    CUDA_VISIBLE_DEVICES={uuids!r}, protocol="tls", security=Security.temporary(),
    dashboard_address=None,
)
client = Client(cluster)
out = client.gather(client.map(lambda x: measure(x, {workers}), range({tasks}), pure=False))
"""
OURS = "%%gpu-schedule --cpus {workers}\ntotals = [burn(count) for _ in range({tasks})]"
PASS = "%%gpu-schedule\npass"


def main() -> int:
    """Measure, print, and return 1 where a target is missed."""
    with _lab() as one:
        checks = [_tasks(one), _pass(one)]
    with tempfile.TemporaryDirectory(prefix="wb") as place:
        world = StubWorld(build(Path(place)), Path(place) / "script.txt")
        checks += [_first_pass(), _first_tasks(), _first_gpu_tasks(world)]
    return report("bench-cell", checks)


@contextlib.contextmanager
def _lab(world: StubWorld | None = None) -> Iterator[Lab]:
    with tempfile.TemporaryDirectory(prefix="wb") as root, lab(Path(root)) as one:
        if world is not None:
            one.env |= world.env | gpu_tasks.install(Path(root) / "tasks")
        yield one


def _tasks(one: Lab) -> Check:
    ours, theirs = one.notebook(), one.notebook(loaded=False)
    count = _calibrated(ours)
    _run(theirs, f"{BURN}\ncount = {count}")
    _run(theirs, CLUSTER.format(workers=WORKERS, tasks=TASKS))
    cell = OURS.format(workers=WORKERS, tasks=TASKS)
    _timed(ours, cell)
    pairs = [(_timed(ours, cell), _timed(theirs, "totals = both()")) for _ in range(ROUNDS)]
    for name, times in zip(("ours", "hand-written"), zip(*pairs, strict=True), strict=True):
        print(f"{name}: {', '.join(f'{one_s:.3f}' for one_s in times)} s", flush=True)
    _check_places(one)
    name = f"{TASKS} x {TASK_S} s on {WORKERS} workers, over dask.delayed on a cluster that is up"
    return compared(name, pairs, unit="s", target=RATIO_TARGET)


def _calibrated(notebook: Notebook) -> int:
    """Define the busy loop, and `count`, with which it takes `TASK_S`."""
    _run(notebook, BURN)
    count = int(_run(notebook, CALIBRATE.format(task_s=TASK_S)))
    _run(notebook, f"count = {count}")
    return count


def _check_places(one: Lab) -> None:
    """Make sure that the last job's tasks ran on as many workers as they should."""
    last = max(one.jobs.iterdir(), key=lambda job: (job / "job.json").stat().st_mtime)
    lines = [json.loads(line) for line in (last / "output.jsonl").read_text().splitlines()]
    places = {line["where"] for line in lines if line["kind"] == "place"}
    assert len(places - {"home"}) == WORKERS, f"the tasks ran on {sorted(places)}"


def _pass(one: Lab) -> Check:
    notebook = one.notebook()
    _timed(notebook, PASS)
    pairs = [
        (1000 * _timed(notebook, PASS), 1000 * _timed(notebook, "pass")) for _ in range(2 * ROUNDS)
    ]
    return compared(
        "a cell of `pass` over the kernel, in parts of 150 ms",
        pairs,
        unit="ms",
        target=1.0,
        ratio=lambda ours, peer: (ours - peer) / PASS_BUDGET_MS,
    )


def _first_pass() -> Check:
    pairs = []
    for _ in range(FIRST_ROUNDS):
        with _lab() as one:
            notebook = one.notebook()
            pairs.append((_timed(notebook, PASS), _timed(notebook, "pass")))
    return compared(
        "first scheduled cell, in order, over the kernel, in parts of 3 s",
        pairs,
        unit="s",
        ratio=lambda ours, peer: (ours - peer) / FIRST_AIM_S,
    )


def _first_tasks() -> Check:
    pairs = []
    for _ in range(FIRST_ROUNDS):
        with _lab() as one:
            ours, theirs = one.notebook(), one.notebook(loaded=False)
            count = _calibrated(ours)
            _run(theirs, f"{BURN}\ncount = {count}")
            ours_s = _timed(ours, OURS.format(workers=WORKERS, tasks=TASKS))
            _check_places(one)
            cluster = CLUSTER.format(workers=WORKERS, tasks=TASKS)
            pairs.append((ours_s, _timed(theirs, cluster)))
    return compared("first scheduled cell, CPU tasks, over Dask that starts", pairs, unit="s")


def _first_gpu_tasks(world: StubWorld) -> Check:
    uuids = world.gpus(4)[:WORKERS]
    pairs = []
    for _ in range(FIRST_ROUNDS):
        with _lab(world) as one:
            ours = one.notebook()
            _run(ours, gpu_tasks.SETUP)
            cell = gpu_tasks.cell(items=TASKS, together=WORKERS)
            ours_s = _timed(ours, f"%%gpu-schedule --gpus {WORKERS}\n{cell}")
            _check_places(one)
        with _lab(world) as one:
            theirs = one.notebook(loaded=False)
            _run(theirs, gpu_tasks.SETUP)
            cluster = CUDA_CLUSTER.format(uuids=uuids, workers=WORKERS, tasks=TASKS)
            pairs.append((ours_s, _timed(theirs, cluster)))
    name = f"first scheduled cell, tasks on {WORKERS} GPUs (stand-ins), over dask-cuda that starts"
    return compared(name, pairs, unit="s")


def _timed(notebook: Notebook, code: str) -> float:
    start = time.perf_counter()
    _run(notebook, code)
    return time.perf_counter() - start


def _run(notebook: Notebook, code: str) -> str:
    run = notebook.run(code, timeout_s=240)
    assert run.ok, run.error
    return run.stdout


if __name__ == "__main__":
    sys.exit(main())
