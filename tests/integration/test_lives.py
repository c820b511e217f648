"""What outlives what: interrupts, detached jobs, restarts, kills."""

from __future__ import annotations

import json
import signal
import threading

import pytest

from tests.integration.lab import Lab, Notebook

LOOP = "import time\nfor i in range(600):\n    time.sleep(0.1)"


@pytest.fixture(scope="module")
def notebook(shared_lab: Lab) -> Notebook:
    return shared_lab.notebook()


def states(lab: Lab) -> list[str]:
    return [one["state"] for one in json.loads(lab.workbench("jobs", "--json").stdout)]


def test_an_interrupt_keeps_the_statements_finished_before_it(
    notebook: Notebook, shared_lab: Lab
) -> None:
    cell = notebook.start(f"%%gpu-schedule --split none\nfinished = 1\nprint('I am up')\n{LOOP}")
    notebook.shown(cell, "I am up")
    notebook.interrupt()
    run = notebook.collect(cell)
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert notebook.run("finished").result == "1"
    assert "running" not in states(shared_lab)


def test_an_interrupt_while_waiting_leaves_the_queue(notebook: Notebook, shared_lab: Lab) -> None:
    holder = notebook.run(f"%%gpu-schedule --detach --cpus 2 --name holder\n{LOOP}")
    assert holder.ok, holder.error
    cell = notebook.start("%%gpu-schedule --cpus 2\nnever = 1")
    texts = notebook.shown(cell, "waiting, next in line")
    assert any("cores" in one for one in texts), texts
    notebook.interrupt()
    run = notebook.collect(cell)
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert notebook.run("'never' in globals()").result == "False"
    assert states(shared_lab).count("queued") == 0
    assert notebook.run("_job = %gpu-jobs").ok
    cancelled = notebook.run(f"%gpu-cancel {running_id(shared_lab)}")
    assert cancelled.ok, cancelled.error


def running_id(lab: Lab) -> str:
    jobs = json.loads(lab.workbench("jobs", "--json").stdout)
    return next(one["id"] for one in jobs if one["state"] in {"running", "stopping"})


def test_an_interrupt_before_the_first_statement_is_an_interrupt_too(notebook: Notebook) -> None:
    cell = notebook.start(f"%%gpu-schedule --split none\n{LOOP}")
    notebook.shown(cell, "gpu-schedule: ")
    notebook.interrupt()
    assert notebook.collect(cell).reply["ename"] == "KeyboardInterrupt"


def test_a_second_interrupt_returns_at_once(notebook: Notebook) -> None:
    stubborn = (
        "%%gpu-schedule --split none\nimport time\nprint('up')\nwhile True:\n"
        "    try:\n        time.sleep(60)\n    except KeyboardInterrupt:\n        print('no')"
    )
    cell = notebook.start(stubborn)
    notebook.shown(cell, "up")
    notebook.interrupt()
    notebook.shown(cell, "no")
    notebook.interrupt()
    run = notebook.collect(cell, timeout_s=10)
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert "frontends" not in run.traceback, "frames of Workbench are shown"


def test_a_cell_that_nobody_waits_for_leaves_no_data(one_lab: Lab) -> None:
    notebook = one_lab.notebook()
    notebook.run("secret = 'in the inputs'")
    cell = notebook.start(
        "%%gpu-schedule --split none\nimport time\nprint('up', secret)\nwhile True:\n"
        "    try:\n        time.sleep(60)\n    except KeyboardInterrupt:\n        print('no')"
    )
    notebook.shown(cell, "up")
    notebook.interrupt()
    notebook.shown(cell, "no")
    notebook.interrupt()
    assert notebook.collect(cell).reply["ename"] == "KeyboardInterrupt"
    (job,) = one_lab.jobs.iterdir()
    for _ in range(200):
        if not (job / "inputs.pickle").exists():
            break
        notebook.run("import time\ntime.sleep(0.1)")
    left = {one.name for one in job.iterdir()}
    assert not left & {"inputs.pickle", "buffers.bin", "result.pickle"}
    assert "running" not in states(one_lab)


# Sooner than this ipykernel itself catches it, before the cell runs, and never replies.
@pytest.mark.parametrize("delay_ms", [8, 15, 40, 70, 100, 125, 150, 200])
def test_an_interrupt_at_any_moment_of_the_start_keeps_what_has_run(
    notebook: Notebook, shared_lab: Lab, delay_ms: int
) -> None:
    marker = shared_lab.work / f"ran-{delay_ms}"
    cell = notebook.start(
        f"%%gpu-schedule --split none\nfirst = {delay_ms}\nopen({str(marker)!r}, 'w').close()\n{LOOP}"
    )
    while notebook.client.get_iopub_msg(timeout=10)["msg_type"] != "execute_input":
        pass
    threading.Event().wait(delay_ms / 1000)  # The moment is what is tried.
    notebook.interrupt()
    run = notebook.collect(cell)
    assert run.reply["ename"] == "KeyboardInterrupt"
    assert not [one for one in ("frontends", "concurrent") if one in run.traceback]
    if marker.exists():
        assert notebook.run("first").result == str(delay_ms)
    shared_lab.workbench("up")  # At the soonest moments nothing has started a controller yet.
    assert not {"running", "queued"} & set(states(shared_lab))


def test_a_detached_job_is_bound_by_its_result_only(notebook: Notebook) -> None:
    run = notebook.run("job = None")
    run = notebook.run("%%gpu-schedule --detach\nprint('far away')\nfar = [1]\n")
    assert run.ok, run.error
    run = notebook.run("far_job = _\nfar_job.wait(30)")
    assert run.result == "'done'", run.error
    assert notebook.run("'far' in globals()").result == "False"
    assert notebook.run("print(far_job.logs(), end='')").stdout == "far away\n"
    run = notebook.run("far_job.result()")
    assert (run.result, run.stdout) == (None, "far away\n")
    assert notebook.run("far").result == "[1]"


def test_the_result_of_a_detached_job_is_what_its_cell_would_have_shown(notebook: Notebook) -> None:
    code = "from IPython.display import HTML, display\ndisplay(HTML('<i>1</i>'))\nprint('up')\n5"
    assert notebook.run(f"%%gpu-schedule --detach\n{code}").ok
    run = notebook.run("_.result()")
    assert (run.result, run.stdout) == ("5", "up\n")
    assert run.displays == ["<IPython.core.display.HTML object>"]
    assert "_gpu_schedule_result" not in (notebook.run("dir()").result or "")


def test_a_cancelled_jobs_result_is_refused_in_a_sentence(notebook: Notebook) -> None:
    assert notebook.run(f"%%gpu-schedule --detach\n{LOOP}").ok
    run = notebook.run("ended = _\nended.cancel()\nended.result()")
    assert "JobFailed: the job ended: cancelled by its owner" in run.error
    assert run.traceback.startswith("JobFailed: the job ended: cancelled by its owner")
    assert "client" not in run.traceback


def test_a_later_cell_that_reads_a_detached_jobs_names_is_told(notebook: Notebook) -> None:
    run = notebook.run("%%gpu-schedule --detach\nelsewhere = 2")
    assert run.ok, run.error
    run = notebook.run("try:\n    elsewhere\nexcept NameError:\n    pass")
    assert "elsewhere" in run.stderr
    assert ".result()" in run.stderr


def test_a_detached_job_survives_a_kernel_restart(one_lab: Lab) -> None:
    notebook = one_lab.notebook()
    code = (
        "%%gpu-schedule --detach\nimport time\ntime.sleep(1)\nclass C: pass\nkept = C()\nkept.v = 7"
    )
    run = notebook.run(code)
    assert run.ok, run.error
    job = notebook.run("_.id").result
    assert job is not None
    notebook.restart()
    run = notebook.run(f"import workbench\nback = workbench.job({job})\nback.wait(30)")
    assert run.result == "'done'", run.error
    assert notebook.run("back.result()").ok
    assert notebook.run("(kept.v, type(kept) is C)").result == "(7, True)"


def test_a_controller_killed_mid_job_costs_the_job_nothing(one_lab: Lab) -> None:
    notebook = one_lab.notebook()
    cell = notebook.start(
        "%%gpu-schedule --split none\nimport time\nprint('up')\ntime.sleep(2)\nx = 5"
    )
    notebook.shown(cell, "up")
    (controller,) = one_lab.processes("workbench.controller")
    controller.send_signal(signal.SIGKILL)
    run = notebook.collect(cell)
    assert run.ok, run.error
    assert notebook.run("x").result == "5"
    assert one_lab.processes("workbench.controller")[0].pid != controller.pid
    assert "running" not in states(one_lab)


def test_an_agent_killed_mid_job_costs_the_job_nothing(one_lab: Lab) -> None:
    notebook = one_lab.notebook()
    cell = notebook.start(
        "%%gpu-schedule --split none\nimport time\nprint('up')\ntime.sleep(2)\nprint('end')\nx = 5"
    )
    notebook.shown(cell, "up")
    agent = next(one for one in one_lab.processes("-m workbench.agent") if is_agent(one))
    agent.send_signal(signal.SIGKILL)
    run = notebook.collect(cell)
    assert run.ok, run.error
    assert run.stdout.endswith("end\n")
    assert notebook.run("x").result == "5"


def is_agent(process: object) -> bool:
    line = process.cmdline()  # type: ignore[attr-defined]
    return line[-1] == "workbench.agent" or "workbench.agent" in line


def test_down_is_down_though_a_cell_waits_and_up_takes_it_up(one_lab: Lab) -> None:
    assert one_lab.workbench("up", "--simulate", "1xA100-SXM4-80GB").returncode == 0
    notebook = one_lab.notebook()
    cell = notebook.start(
        "%%gpu-schedule --gpus 1 --split none\nimport pathlib, time\nprint('up')\n"
        "while not pathlib.Path('go').exists():\n    time.sleep(0.05)\nx = 5"
    )
    notebook.shown(cell, "up")
    down = one_lab.workbench("down", "--force")
    assert down.returncode == 0, down.stderr
    notebook.shown(cell, "was stopped with `workbench down`; trying again, the job goes on")
    assert one_lab.processes("workbench.controller") == []
    up = one_lab.workbench("up")
    assert "SIMULATED" in up.stdout
    (one_lab.work / "go").touch()
    run = notebook.collect(cell)
    assert run.ok, run.error
    assert notebook.run("x").result == "5"
    assert one_lab.workbench("down").returncode == 0
    refused = notebook.run("%gpu-status")
    assert "stopped with `workbench down`" in refused.error
    assert notebook.run("%%gpu-schedule\nx = 6").ok
    assert "SIMULATED" not in one_lab.workbench("status").stdout


def test_children_do_not_outlive_a_cancel(one_lab: Lab) -> None:
    # neptaco/mcproc#38: a daemon, a new session, an ignored TERM.
    notebook = one_lab.notebook()
    code = (
        "%%gpu-schedule --detach\n"
        "import os, signal, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "        open('daemon', 'w').write(str(os.getpid()))\n"
        "        time.sleep(600)\n"
        "    os._exit(0)\n"
        f"{LOOP}"
    )
    run = notebook.run(code)
    assert run.ok, run.error
    notebook.run("job = _")
    run = notebook.run(
        "import os, time\nwhile not (os.path.exists('daemon') and open('daemon').read()):\n"
        "    time.sleep(0.05)\npid = int(open('daemon').read())\njob.cancel()\njob.wait(30)"
    )
    assert run.result == "'cancelled'", run.error
    assert notebook.run("os.path.exists(f'/proc/{pid}')").result == "False"


def test_a_state_directory_without_write_permission_is_named(one_lab: Lab) -> None:
    state = one_lab.root / "state"
    (state / "gpu-workbench").write_text("in the way")
    notebook = one_lab.notebook()
    run = notebook.run("%%gpu-schedule\nx = 1")
    assert not run.ok
    assert str(state / "gpu-workbench") in run.error
    assert notebook.run("1").result == "1"


def test_a_socket_path_that_is_too_long_is_named(one_lab: Lab) -> None:
    long = one_lab.root / ("d" * 100)
    long.mkdir(mode=0o700)
    one_lab.env["XDG_RUNTIME_DIR"] = str(long)
    notebook = one_lab.notebook()
    run = notebook.run("%%gpu-schedule\nx = 1")
    assert run.reply["ename"] == "BadPlace"
    assert "the limit is 100" in run.error
