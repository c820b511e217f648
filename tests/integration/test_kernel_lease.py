"""A kernel's lease, from a start in Jupyter to the freed GPU."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.integration.leased import LeasedLab, leased_lab, until
from tests.stand_ins.world import StubWorld
from workbench.client.kernel_lease import NotGranted
from workbench.core.errors import NeverFits

NOTEBOOK = "work/train.ipynb"


@pytest.fixture
def labs(nvml_stub: StubWorld) -> Iterator[LeasedLab]:
    """A lab with one GPU."""
    nvml_stub.gpus(1)
    with leased_lab(nvml_stub) as one:
        yield one


def keepers(labs: LeasedLab) -> set[int]:
    """Pids of the launcher's own forks."""
    launchers = {one.pid: one for one in labs.lab.processes("workbench.agent.launcher")}
    return {pid for pid, one in launchers.items() if one.ppid() in launchers}


def agent_pid(labs: LeasedLab) -> int:
    found = until(
        lambda: [one.pid for one in labs.lab.processes() if "workbench.agent" in one.cmdline()],
        "an agent",
    )
    return int(found[0])


def test_a_kernel_sees_exactly_its_gpu_until_it_is_shut_down(
    nvml_stub: StubWorld, labs: LeasedLab
) -> None:
    nvml_stub.gpus(2)
    kernel = labs.start(notebook=NOTEBOOK)
    view = labs.running()
    assert (view.name, view.notebook) == ("Python 3 (GPU lease)", NOTEBOOK)
    env = kernel.environment()
    assert env["CUDA_VISIBLE_DEVICES"] == view.gpus[0]
    assert view.gpus[0] in nvml_stub.uuids
    assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert env["OMP_NUM_THREADS"] == str(view.cores)
    assert len(env["GPU_WORKBENCH_LEASE"]) == 64
    assert kernel.run("import workbench; workbench.device()").result == "'cuda:0'"
    kernel.shut_down()
    assert labs.freed(view.id).outcome == "done"


def test_a_start_that_gets_no_gpu_says_where_it_stands_and_the_next_one_takes_its_ticket_up(
    labs: LeasedLab,
) -> None:
    first = labs.start()
    hasty = labs.spec("hasty", wait_s=0.5)
    with pytest.raises(NotGranted) as refused:
        labs.start(hasty, notebook=NOTEBOOK)
    assert "place 1 in line: it waits for 1 GPU, 0 free" in str(refused.value)
    assert "start unknown" in str(refused.value)
    assert "The ticket is kept for 10 min" in str(refused.value)
    (ticket,) = [view for view in labs.kernel_jobs() if view.state == "queued"]
    with pytest.raises(NotGranted):
        labs.start(hasty, notebook=NOTEBOOK)
    assert [view.id for view in labs.kernel_jobs() if view.state == "queued"] == [ticket.id]

    first.shut_down()
    (ready,) = until(
        lambda: [v for v in labs.kernel_jobs() if v.id == ticket.id and v.gpus], "the grant"
    )
    assert (ready.state, ready.reason) == ("starting", "ready: start the kernel")
    lost = agent_pid(labs)
    os.kill(lost, signal.SIGKILL)
    until(lambda: agent_pid(labs) != lost and "agent" not in labs.kernel_jobs()[0].reason, "it")
    assert labs.kernel_jobs()[0].state == "starting"
    second = labs.start(hasty, notebook=NOTEBOOK)
    assert labs.running().id == ticket.id
    assert second.environment()["CUDA_VISIBLE_DEVICES"] == ready.gpus[0]


def test_another_notebook_does_not_take_a_ticket_up(labs: LeasedLab) -> None:
    labs.start()
    hasty = labs.spec("hasty", wait_s=0.3)
    for notebook in (NOTEBOOK, "other.ipynb"):
        with pytest.raises(NotGranted):
            labs.start(hasty, notebook=notebook)
    waiting = [view.notebook for view in labs.kernel_jobs() if view.state == "queued"]
    assert waiting == [NOTEBOOK, "other.ipynb"]


@pytest.mark.parametrize("now", [False, True])
def test_a_restart_keeps_the_lease_though_somebody_waits(labs: LeasedLab, *, now: bool) -> None:
    kernel = labs.start()
    before = labs.running()
    with pytest.raises(NotGranted):
        labs.start(labs.spec("hasty", wait_s=0.3), notebook=NOTEBOOK)
    kernel.manager.restart_kernel(now=now)
    kernel.client.wait_for_ready(timeout=30)
    assert kernel.environment()["CUDA_VISIBLE_DEVICES"] == before.gpus[0]
    assert [v.id for v in labs.kernel_jobs() if v.state == "running"] == [before.id]


def test_a_killed_kernel_frees_its_gpu(labs: LeasedLab) -> None:
    kernel = labs.start()
    job = labs.running().id
    os.kill(kernel.pid, signal.SIGKILL)
    assert labs.freed(job).outcome == "done"


def test_a_killed_agent_costs_no_lease(labs: LeasedLab) -> None:
    kernel = labs.start()
    job = labs.running().id
    first = agent_pid(labs)
    os.kill(first, signal.SIGKILL)
    assert kernel.run("1 + 1").result == "2"
    assert labs.running().id == job
    kernel.shut_down()
    assert labs.freed(job).outcome == "done"
    assert agent_pid(labs) != first


def test_what_a_kernel_starts_for_everybody_is_no_part_of_its_lease(labs: LeasedLab) -> None:
    kernel = labs.start()
    job = labs.running().id
    for one in labs.lab.processes("workbench."):
        if one.pid not in keepers(labs):
            one.kill()
    assert kernel.run("%load_ext workbench").ok
    assert kernel.run("%gpu-plan x = 1").ok  # Starts controller and agent, as children.
    mine = agent_pid(labs)
    kernel.shut_down()
    assert labs.freed(job).outcome == "done"
    assert agent_pid(labs) == mine


def test_a_killed_keeper_is_replaced_and_the_kernel_goes_on(labs: LeasedLab) -> None:
    kernel = labs.start()
    job = labs.running().id
    first = keepers(labs)
    for keeper in first:
        os.kill(keeper, signal.SIGKILL)
    second = until(lambda: keepers(labs) - first, "another keeper")
    assert kernel.run("1 + 1").result == "2"
    assert labs.running().id == job
    kernel.shut_down()
    assert labs.freed(job).outcome == "done"
    until(lambda: not keepers(labs), f"the end of {second}")


def test_a_cancelled_kernel_is_stopped_and_does_not_come_back_by_itself(labs: LeasedLab) -> None:
    kernel = labs.start()
    job = labs.running().id
    run = labs.lab.workbench("cancel", job)
    assert run.returncode == 0, run.stderr
    assert labs.freed(job).outcome == "cancelled"
    assert not kernel.manager.is_alive()
    with pytest.raises(Exception, match="this kernel was stopped: cancelled by its owner"):
        kernel.manager.restart_kernel(now=True)
    kernel.manager.restart_kernel(now=True)
    kernel.client.wait_for_ready(timeout=30)
    assert labs.running().id != job


def test_a_host_without_such_a_gpu_refuses_at_once(nvml_stub: StubWorld, labs: LeasedLab) -> None:
    with pytest.raises(NeverFits) as refused:
        labs.start(labs.spec("large", gpu_memory="200GiB"))
    assert "Use a kernel without a GPU" in str(refused.value)
    assert labs.kernel_jobs() == []
    assert list(labs.lab.jobs.iterdir()) == []


def test_a_scheduled_cell_of_a_leased_kernel_has_a_lease_of_its_own(labs: LeasedLab) -> None:
    kernel = labs.start()
    assert kernel.run("%load_ext workbench").ok
    names = ["CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "GPU_WORKBENCH_LEASE"]
    run = kernel.run(
        "%%gpu-schedule --cpus 1 --split none\n"
        f"import os\nseen = [os.environ.get(name) for name in {names}]"
    )
    assert run.ok, run.error
    env = kernel.environment()
    run = kernel.run("seen")
    assert run.result is not None
    assert "''" in run.result
    assert env["CUDA_VISIBLE_DEVICES"] not in run.result
    assert env["GPU_WORKBENCH_LEASE"] not in run.result


def test_a_running_kernel_leases_in_place_and_gives_back(
    nvml_stub: StubWorld, labs: LeasedLab
) -> None:
    notebook = labs.lab.notebook()
    run = notebook.run("%gpu-lease 1 --time 2h --gpu-memory 6GiB")
    assert run.ok, run.error
    view = labs.running()
    assert run.result == (
        f"this kernel holds {nvml_stub.uuids[0]} until it ends or %gpu-release; "
        "after 2 h it is stopped (--time)"
    )
    assert view.request.time_limit_s == 7200
    asked = "import os, workbench; (os.environ.get('CUDA_VISIBLE_DEVICES'), workbench.device())"
    assert notebook.run(asked).result == f"('{nvml_stub.uuids[0]}', 'cuda:0')"
    again = notebook.run("%gpu-lease")
    assert "this kernel holds" in again.error
    assert notebook.run("%gpu-release").result == f"{nvml_stub.uuids[0]} given back"
    assert labs.freed(view.id).outcome == "done"
    assert notebook.run(asked).result == "(None, 'cpu')"
    assert "this kernel holds no lease" in notebook.run("%gpu-release").error


def test_a_kernel_that_leased_in_place_frees_its_gpu_when_it_is_killed(labs: LeasedLab) -> None:
    notebook = labs.lab.notebook()
    assert notebook.run("%gpu-lease").ok
    job = labs.running().id
    notebook.manager.shutdown_kernel(now=True)
    assert labs.freed(job).outcome == "done"


@pytest.mark.parametrize("pressed", [False, True])
def test_a_running_kernel_that_got_no_gpu_leaves_no_ticket_behind(
    labs: LeasedLab, *, pressed: bool
) -> None:
    first = labs.start()
    notebook = labs.lab.notebook()
    cell = notebook.start(f"%gpu-lease --wait {'10m' if pressed else '1s'}")
    until(lambda: [v for v in labs.kernel_jobs() if v.state == "queued"], "the request")
    if pressed:
        notebook.interrupt()
    refused = notebook.collect(cell)
    assert refused.error.startswith("KeyboardInterrupt" if pressed else "NotGranted: no lease yet")
    assert pressed or "was taken out of the queue: run %gpu-lease again" in refused.error
    assert [view.state for view in labs.kernel_jobs()] == ["running"]
    first.shut_down()
    run = notebook.run("%%gpu-schedule --gpus 1\nx = 1")
    assert run.ok, run.error


def test_a_killed_kernels_request_does_not_wait_on(labs: LeasedLab) -> None:
    labs.start()
    notebook = labs.lab.notebook()
    notebook.start("%gpu-lease --wait 1s")
    (asked,) = until(lambda: [v for v in labs.kernel_jobs() if v.state == "queued"], "the request")
    assert asked.request.wait_limit_s is not None
    assert asked.request.wait_limit_s < 15
    notebook.manager.shutdown_kernel(now=True)
    assert labs.freed(asked.id).outcome in {"expired", "cancelled"}


def test_the_end_of_its_time_stops_the_kernel(labs: LeasedLab) -> None:
    notebook = labs.lab.notebook()
    assert notebook.run("%gpu-lease --time 1s").ok
    job = labs.running().id
    ended = labs.freed(job)
    assert (ended.outcome, ended.reason) == ("timed out", "it ran longer than its limit of 1 s")
    assert not notebook.manager.is_alive()


def test_a_kernel_that_has_initialised_cuda_is_refused(labs: LeasedLab) -> None:
    notebook = labs.lab.notebook()
    fake = (
        "import sys, types\n"
        "torch = types.ModuleType('torch')\n"
        "torch.cuda = types.SimpleNamespace(is_initialized=lambda: initialised)\n"
        "sys.modules['torch'] = torch\n"
        "initialised = True"
    )
    notebook.run(fake)
    refused = notebook.run("%gpu-lease")
    assert "UserError: torch has initialised CUDA" in refused.error
    assert "Restart the kernel" in refused.error
    assert labs.kernel_jobs() == []
    notebook.run("initialised = False")
    assert notebook.run("%gpu-lease").ok
    notebook.run("initialised = True")
    kept = notebook.run("%gpu-release")
    assert "keeps the GPU busy until the kernel ends" in kept.error
    assert "Restart the kernel; that gives the GPU back" in kept.error
    assert len(labs.kernel_jobs()) == 1
