from __future__ import annotations

import asyncio
import os

from tests.controller.running import PATIENCE_S, Peer, Place
from tests.frontends.cli.conftest import CommandLine


async def test_up_starts_both_and_down_stops_both(place: Place, workbench: CommandLine) -> None:
    up = await workbench("up")
    assert (up.code, up.err) == (0, "")
    assert "your own controller runs" in up.out
    assert "your agent runs" in up.out
    peer = await Peer.connect(place.socket)
    first = (await peer.status()).controller.pid
    assert (await workbench("up", "--json")).json()["controller"]["pid"] == first

    down = await workbench("down", "--json")
    assert down.code == 0
    assert list(down.json()) == ["agent", "controller"]
    assert down.json()["controller"] == first
    await peer.lost()
    await peer.close()
    assert not place.socket.exists()
    assert (await workbench("down")).out == "nothing of yours runs\n"


async def test_up_gives_a_simulated_lab_and_says_so(place: Place, workbench: CommandLine) -> None:
    up = await workbench("up", "--simulate", "4xA100-SXM4-80GB")
    assert up.code == 0
    assert "SIMULATED" in up.out
    status = (await workbench("status", "--json")).json()
    assert len(status["sample"]["devices"]) == 4
    assert (await workbench("up", "--simulate", "4xA100-SXM4-80GB")).code == 0
    other = await workbench("up", "--simulate", "2xA100-SXM4-80GB")
    assert (other.code, "4xA100-SXM4-80GB, not 2x" in other.err) == (1, True)


async def test_up_refuses_to_simulate_beside_real_devices_or_nonsense(
    place: Place, workbench: CommandLine
) -> None:
    for nonsense in ("4 GPUs", "", "0xA100-SXM4-80GB", "1xnonsense"):
        said = await workbench("up", "--simulate", nonsense)
        assert said.code == 1
        assert "python" not in said.err
        assert not place.socket.exists()
    assert "COUNTxMODEL" in (await workbench("up", "--simulate", "")).err
    await place.start()
    said = await workbench("up", "--simulate", "4xA100-SXM4-80GB")
    assert said.code == 1
    assert "real devices, not 4x" in said.err
    assert "`workbench down` first" in said.err


async def test_down_refuses_while_a_job_of_mine_runs_unless_forced(
    place: Place, workbench: CommandLine
) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    grant = await agent.grant()
    await agent.confirm(grant)
    refused = await workbench("down")
    assert refused.code == 1
    assert job[:8] in refused.err
    assert (await client.job(job)).state == "running"

    forced = await workbench("down", "--force")
    assert forced.out == f"stopped your controller, pid {place.process.pid}\n"
    assert await asyncio.to_thread(place.process.wait, PATIENCE_S) == 0
    await place.start()
    peer = await place.peer()
    assert (await peer.job(job)).state == "running"


async def test_up_names_a_directory_that_cannot_be_used(
    place: Place, workbench: CommandLine
) -> None:
    state = place.root / "file"
    state.touch()
    place.env["XDG_STATE_HOME"] = str(state)
    said = await workbench("up")
    assert said.code == 1
    assert f"{state}/gpu-workbench cannot be used as a private directory" in said.err
    assert "python" not in said.err
    assert not place.socket.exists()


async def test_down_leaves_a_labs_controller_alone(place: Place, workbench: CommandLine) -> None:
    lab = place.root / "lab"
    place.socket = lab / "controller.sock"
    await place.start("--socket", str(lab))
    place.env["WORKBENCH_CONTROLLER"] = str(lab)
    down = await workbench("down")
    assert (down.code, "the lab's controller goes on" in down.out) == (0, True)
    assert place.process.poll() is None
    simulate = await workbench("up", "--simulate", "4xA100-SXM4-80GB")
    assert (simulate.code, "WORKBENCH_CONTROLLER" in simulate.err) == (1, True)


async def test_the_controller_verb_is_the_controller_itself(
    place: Place, workbench: CommandLine
) -> None:
    await place.start()
    second = await workbench("controller", "--embedded")
    assert f"already serves {place.runtime}: pid {place.process.pid}" in second.err
    assert os.getpid() != place.process.pid
