from __future__ import annotations

import ast
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.graphs.run_cases import CASES, SLOW
from tests.stand_ins.world import StubWorld

SPLIT_CELLS = json.loads((Path(__file__).parent / "data/split_cells.json").read_text())
SEEN = ("names", "probe", "shown", "stdout", "stderr", "files", "error")
IN_THE_HOME = {"no item"}
"""What is not sent; all other cases must reach a worker."""
TOLD = {
    "a value that cannot go",
    "a value that cannot come back",
    "an exception that cannot come back",
}
"""What workers cannot compute or send back, so that the home runs it: said so."""


class Stage:
    """A process that runs cells both ways, see `run_stage.py`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, **case: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run a cell in order and as a plan."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        both = json.loads(self._process.stdout.readline())
        for one in both.values():
            assert "stage_failed" not in one, one["stage_failed"]
        return both["in_order"], both["planned"]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with open_stage({}) as one:
        yield one


@contextlib.contextmanager
def open_stage(variables: dict[str, str]) -> Iterator[Stage]:
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.graphs.run_stage"],
        env=os.environ | single | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Stage(process)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(10) == 0
        finally:
            process.kill()


def lines(run: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [line for line in run["lines"] if line["kind"] == kind]


def seen(run: dict[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in SEEN}


@pytest.mark.parametrize("name", CASES)
def test_a_planned_cell_is_as_in_order(stage: Stage, name: str) -> None:
    in_order, planned = stage.run(**CASES[name])
    assert seen(planned) == seen(in_order)
    assert bool(lines(planned, "progress")) == (name in TOLD), "left to the home unforeseen"
    if name not in IN_THE_HOME | TOLD:
        assert lines(planned, "place"), "nothing ran on a worker"


@pytest.mark.parametrize(
    "name", [f"{kind} {name}" for kind, some in SPLIT_CELLS.items() for name in some]
)
def test_a_collected_cell_is_as_in_order(stage: Stage, name: str) -> None:
    kind, key = name.split()
    in_order, planned = stage.run(cell="\n".join(SPLIT_CELLS[kind][key]))
    assert seen(planned) == seen(in_order)
    assert not lines(planned, "progress")


def test_one_task_alone_is_not_sent(stage: Stage) -> None:
    in_order, planned = stage.run(setup=SLOW, cell="a = slow(1)\nprint(a)")
    assert seen(planned) == seen(in_order)
    assert not lines(planned, "place")


def test_items_run_in_several_processes(stage: Stage) -> None:
    _, planned = stage.run(setup=SLOW, cell="ys = [slow(x) for x in range(100)]")
    places = lines(planned, "place")
    assert len(places) == 8
    assert {place["where"] for place in places} == {"worker-0", "worker-1"}
    assert all(place["start_unix_s"] <= place["end_unix_s"] for place in places)


LOOP = "out = []\nfor x in range(8):\n    y = slow(x)\n    out.append(y)\nafter = len(out)"


def test_a_part_whose_worker_is_killed_is_run_again(stage: Stage) -> None:
    in_order, planned = stage.run(setup=SLOW, cell=LOOP, kill=["1-2-1"])
    assert seen(planned) == seen(in_order)
    assert planned["killed"] == 1
    (told,) = lines(planned, "progress")
    assert told["what"].startswith("line 3, item 3 again: worker-")


def test_a_part_that_kills_two_workers_fails_in_its_turn(stage: Stage) -> None:
    _, planned = stage.run(setup=SLOW, cell=LOOP, workers=3, kill=["1-2-1", "1-2-2"])
    assert planned["killed"] == 2
    (error,) = planned["error"]["chain"]
    assert error["type"] == "WorkerLost"
    assert "line 3, item 3" in error["text"]
    assert planned["names"]["out"] == "list [0, 1999000]"
    assert planned["names"]["x"] == "int 2"
    assert "after" not in planned["names"]


def test_what_killed_every_worker_is_not_run_in_the_home(stage: Stage) -> None:
    _, planned = stage.run(setup=SLOW, cell=LOOP, kill=["1-2-1", "1-2-2"])
    assert planned["killed"] == 2
    assert planned["error"]["chain"][0]["type"] == "WorkerLost"
    assert planned["names"]["out"] == "list [0, 1999000]"


def test_where_no_worker_is_left_the_home_goes_on(stage: Stage) -> None:
    # By item and not by attempt: what is queued behind the first is sent once more.
    in_order, planned = stage.run(setup=SLOW, cell=LOOP, kill_once=["1-2", "1-5"])
    assert seen(planned) == seen(in_order)
    assert planned["killed"] == 2


def test_an_interrupt_keeps_what_was_committed(stage: Stage) -> None:
    cell = "a = slow(1)\nb = slow(2)\nys = [slow(x) for x in range(10**4)]\nafter = 1"
    _, planned = stage.run(setup=SLOW, cell=cell, interrupt_after=0)
    assert planned["error"]["chain"][0]["type"] == "KeyboardInterrupt"
    assert planned["names"]["a"] == "int 1999000"
    assert not {"ys", "after"} & set(planned["names"])
    assert planned["killed"] == 0


WHERE = (
    SLOW
    + """
import os
def where(x):
    slow(x)
    return os.environ["CUDA_VISIBLE_DEVICES"]
"""
)
SWAP = """
import os
if "CUDA_VISIBLE_DEVICES" in os.environ:
    os.environ["CUDA_VISIBLE_DEVICES"] = {!r}
"""


def test_what_uses_a_gpu_runs_where_one_leased_gpu_is_visible(nvml_stub: StubWorld) -> None:
    pytest.importorskip("dask_cuda", reason="GPU workers need the cuda extra")
    uuids = nvml_stub.gpus(3)
    leased = [uuids[2], uuids[0]]
    cell = "seen = [where(x) for x in range(6)]\na = slow(1)\nb = slow(2)"
    with open_stage(nvml_stub.env) as stage:
        _, planned = stage.run(
            setup=WHERE,
            cell=cell,
            gpus=leased,
            uses_gpu=[0],
            moved={0: "map", 1: "task", 2: "task"},
        )
    assert planned["error"] is None
    seen = ast.literal_eval(planned["names"]["seen"].removeprefix("list "))
    assert len(seen) == 6
    assert set(seen) <= set(leased)
    places = lines(planned, "place")
    assert {line["where"] for line in places if "item" in line["what"]} == set(seen)
    assert {line["where"] for line in places if "item" not in line["what"]} <= {
        "worker-0",
        "worker-1",
    }


def test_a_worker_that_sees_another_gpu_fails_the_cell_and_says_so(
    nvml_stub: StubWorld, tmp_path: Path
) -> None:
    pytest.importorskip("dask_cuda", reason="GPU workers need the cuda extra")
    leased, other = nvml_stub.gpus(2)
    (tmp_path / "sitecustomize.py").write_text(SWAP.format(other))
    cell = "a = slow(1)\nseen = [where(x) for x in range(6)]"
    with open_stage(nvml_stub.env | {"PYTHONPATH": str(tmp_path)}) as stage:
        _, planned = stage.run(
            setup=WHERE, cell=cell, gpus=[leased], uses_gpu=[1], moved={0: "task", 1: "map"}
        )
    (error,) = planned["error"]["chain"]
    assert error["type"] == "WrongDevice"
    assert f"leased {leased}, but CUDA shows {other}" in error["text"]
    assert "seen" not in planned["names"]
