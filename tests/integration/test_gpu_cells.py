"""Cells whose tasks need GPUs: four stand-in cards, real dask-cuda workers, real processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.integration import gpu_tasks
from tests.integration.lab import Notebook
from tests.integration.leased import LeasedLab, leased_lab, until
from tests.stand_ins.world import GIB, StubWorld
from workbench.client import ControllerClient
from workbench.protocol.messages import Status

LIMIT_S = 240.0
ITEMS = 8

pytest.importorskip("dask_cuda", reason="GPU workers need the cuda extra")


@pytest.fixture
def labs(nvml_stub: StubWorld, tmp_path: Path) -> Iterator[LeasedLab]:
    nvml_stub.gpus(4)
    with leased_lab(nvml_stub) as one:
        one.lab.env |= gpu_tasks.install(tmp_path / "tasks")
        yield one


def notebook(labs: LeasedLab) -> Notebook:
    one = labs.lab.notebook()
    run = one.run(gpu_tasks.SETUP)
    assert run.ok, run.error
    return one


def of_the_job(job: str) -> list[psutil.Process]:
    """Live processes that carry a lease of the job."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            if b"/" + job.encode() in environment and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def memory_limit(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        words = process.cmdline()
        if "--device-memory-limit" in words:
            return [words[words.index("--device-memory-limit") + 1]]
    return []


@dataclass
class Watched:
    """What the controller showed, looked at with each change.

    Attributes:
        gpus: By job, in the order in which they got them.
        twice: GPUs that two jobs held in one view.
        processes: The most that a job had at a time.
        limits: What its Dask workers were given as the limit of their GPU's memory.
        outlived: Those that were there when their job no longer held its GPUs.
        given_back: Jobs that hold none any more.
    """

    gpus: dict[str, list[str]] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)
    processes: int = 0
    limits: set[str] = field(default_factory=set)
    outlived: list[psutil.Process] = field(default_factory=list)
    given_back: set[str] = field(default_factory=set)

    def look(self, status: Status) -> None:
        held = {view.id: view.gpus for view in status.jobs if view.gpus}
        flat = [gpu for gpus in held.values() for gpu in gpus]
        self.twice += [gpu for gpu in set(flat) if flat.count(gpu) > 1]
        for job in set(self.gpus) - set(held) - self.given_back:
            self.given_back.add(job)
            self.outlived += of_the_job(job)
        self.gpus |= held
        for job in held:
            processes = of_the_job(job)
            self.processes = max(self.processes, len(processes))
            self.limits |= {limit for one in processes for limit in memory_limit(one)}


@contextlib.contextmanager
def watched() -> Iterator[Watched]:
    """Look at every view of the controller; at the end wait until all GPUs are given back."""
    found = Watched()
    stop = threading.Event()

    async def watch() -> None:
        controller = await ControllerClient.connect()
        try:
            async with contextlib.aclosing(controller.watch()) as views:
                async for status in views:
                    found.look(status)
                    if stop.is_set():
                        return
        finally:
            await controller.close()

    thread = threading.Thread(target=asyncio.run, args=(watch(),))
    thread.start()
    try:
        yield found
        until(lambda: found.gpus and set(found.gpus) == found.given_back, "every GPU back")
    finally:
        stop.set()  # The next sample is a change too.
        thread.join()


def out(one: Notebook) -> list[list[Any]]:
    """What the cell's items returned: which GPU each saw, and a number."""
    run = one.run("import json; print(json.dumps(out))")
    assert run.ok, run.error
    found: list[list[Any]] = json.loads(run.stdout)
    return found


def in_order(one: Notebook) -> list[int]:
    run = one.run(f"print([slow(x) for x in range({ITEMS})])")
    found: list[int] = json.loads(run.stdout)
    return found


def places(labs: LeasedLab, job: str) -> set[str]:
    lines = map(json.loads, (labs.lab.jobs / job / "output.jsonl").read_text().splitlines())
    return {line["where"] for line in lines if line["kind"] == "place"}


def test_each_item_sees_one_of_the_two_leased_gpus_alone(labs: LeasedLab) -> None:
    one = notebook(labs)
    with watched() as views:
        cell = gpu_tasks.cell(items=ITEMS, together=2)
        line = "%%gpu-schedule --gpus 2 --cpus 1 --gpu-memory 6GiB"
        run = one.run(f"{line}\n{cell}", timeout_s=LIMIT_S)
    assert run.ok, run.error
    ((job, leased),) = views.gpus.items()
    found = out(one)
    assert [value for _, value in found] == in_order(one)
    assert {seen for seen, _ in found} == set(leased)
    assert len(leased) == 2
    assert places(labs, job) == set(leased)
    assert views.twice == []
    assert views.processes > len(leased)
    assert views.limits == {str(6 * GIB)}
    assert views.outlived == []


def test_two_cells_at_once_never_share_a_gpu(labs: LeasedLab, nvml_stub: StubWorld) -> None:
    both = [notebook(labs), notebook(labs)]
    cell = gpu_tasks.cell(items=ITEMS, together=4)
    with watched() as views:
        begun = [one.start(f"%%gpu-schedule --gpus 2 --cpus 1\n{cell}") for one in both]
        runs = [
            one.collect(message, timeout_s=LIMIT_S)
            for one, message in zip(both, begun, strict=True)
        ]
    assert [run.error for run in runs] == ["", ""]
    leased = [set(gpus) for gpus in views.gpus.values()]
    seen = [{gpu for gpu, _ in out(one)} for one in both]
    assert sorted(map(sorted, seen)) == sorted(map(sorted, leased))
    assert seen[0] | seen[1] == set(nvml_stub.uuids)
    assert views.twice == []
    assert views.outlived == []


@pytest.mark.parametrize("cores", [1, 2])
def test_one_gpu_is_used_by_the_home_itself(labs: LeasedLab, cores: int) -> None:
    """With two cores CPU workers stand ready, which see no GPU."""
    one = notebook(labs)
    with watched() as views:
        cell = gpu_tasks.cell(items=ITEMS)
        run = one.run(f"%%gpu-schedule --gpus 1 --cpus {cores}\n{cell}", timeout_s=LIMIT_S)
    assert run.ok, run.error
    ((job, leased),) = views.gpus.items()
    found = out(one)
    assert [value for _, value in found] == in_order(one)
    assert {seen for seen, _ in found} == set(leased)
    assert len(leased) == 1
    assert places(labs, job) == {"home"}
    assert views.outlived == []
