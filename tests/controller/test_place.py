"""One controller a place, where it listens, and when it leaves."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from pathlib import Path

import pytest

from tests.controller.running import PATIENCE_S, Place
from workbench.core.model import Outcome
from workbench.core.scheduler import Scheduler
from workbench.journal.journal import Journal
from workbench.policies.fifo import Fifo


async def test_a_second_controller_names_the_first_and_leaves(place: Place) -> None:
    await place.start()
    first = place.process
    second = place.spawn()
    _, said = await asyncio.to_thread(second.communicate, timeout=PATIENCE_S)
    assert f"already serves {place.runtime}: pid {first.pid}" in said
    assert second.returncode == 0
    assert first.poll() is None
    await (await place.peer()).status()


async def test_two_controllers_never_share_a_state_directory(place: Place) -> None:
    await place.start()
    with tempfile.TemporaryDirectory(prefix="wb-") as directory:
        second = place.spawn("--socket", directory)
        _, said = await asyncio.to_thread(second.communicate, timeout=PATIENCE_S)
    assert f"already serves {place.state}: pid {place._started[0].pid}" in said
    assert second.returncode == 1


async def test_a_place_is_free_again_after_a_kill(place: Place) -> None:
    await place.start()
    place.kill()
    assert place.socket.exists()
    await place.start()


async def test_sockets_lock_journal_and_log_are_the_users_alone(place: Place) -> None:
    await place.start()
    paths = [place.socket, *place.runtime.glob("*.lock"), *place.state.iterdir()]
    assert {path.name for path in paths} >= {"controller.log", "journal.sqlite3"}
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for path in (place.runtime, place.state):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path


async def test_no_embedded_controller_starts_where_a_lab_is_named(place: Place) -> None:
    place.env["WORKBENCH_CONTROLLER"] = "/run/somewhere"
    process = place.spawn("--embedded")
    _, said = await asyncio.to_thread(process.communicate, timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "WORKBENCH_CONTROLLER names the lab's controller at /run/somewhere" in said
    assert "Traceback" not in said


async def test_a_labs_socket_is_open_to_everybody_and_its_directory_is_not(place: Place) -> None:
    with tempfile.TemporaryDirectory(prefix="wb-") as directory:
        place.socket = Path(directory, "controller.sock")
        await place.start("--socket", directory)
        assert stat.S_IMODE(place.socket.stat().st_mode) == 0o666
        assert stat.S_IMODE(Path(directory).stat().st_mode) == 0o755
        assert (await (await place.peer()).status()).controller.mode == "lab"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--socket", "/tmp/" + "d" * 100], "the limit is 100"),
        (["--simulate", "4 of them"], "COUNTxMODEL"),
        (["--simulate", "4xNoSuchGpu"], "NoSuchGpu"),
    ],
)
async def test_a_start_that_cannot_be_says_why(
    place: Place, arguments: list[str], says: str
) -> None:
    process = place.spawn(*arguments)
    _, said = await asyncio.to_thread(process.communicate, timeout=PATIENCE_S)
    assert process.returncode == 1
    assert says in said
    assert len(said.splitlines()) == 1
    Path("/tmp/" + "d" * 100).rmdir() if arguments[0] == "--socket" else None


async def test_a_journal_that_is_none_is_left_alone_and_named(place: Place) -> None:
    place.state.mkdir(parents=True)
    journal = place.state / "journal.sqlite3"
    journal.write_text("this is not a journal " * 100)
    process = place.spawn()
    _, said = await asyncio.to_thread(process.communicate, timeout=PATIENCE_S)
    assert process.returncode == 1
    assert str(journal) in said
    assert "Traceback" not in said
    assert journal.read_text().startswith("this is not")


async def test_nobody_uses_it_so_it_exits_by_itself(place: Place) -> None:
    await place.start("--idle-exit", "0.2")
    assert await asyncio.to_thread(place.process.wait, PATIENCE_S) == 0
    assert not place.socket.exists()


async def test_a_live_job_or_a_connection_keeps_it(place: Place) -> None:
    await place.start("--idle-exit", "0.2")
    client = await place.peer()
    job = await client.submit(wait_limit_s=1.0)
    await client.until(job, lambda view: view.state == "ended")
    assert place.process.poll() is None
    await client.submit(wait_limit_s=1.0)
    await client.close()
    assert await asyncio.to_thread(place.process.wait, PATIENCE_S) == 0
    with Journal.open(place.state / "journal.sqlite3") as journal:
        state = Scheduler.restore(Fifo(), journal.entries()).state
    assert [job.outcome for job in state.ended.values()] == [Outcome.EXPIRED, Outcome.EXPIRED]


async def test_the_simulated_lab_says_so(place: Place) -> None:
    await place.simulate(2)
    status = await (await place.peer()).status()
    assert status.controller.simulated
    assert status.sample is not None
    assert [device.simulated for device in status.sample.devices] == [True, True]
    assert status.controller.uid == os.getuid()
