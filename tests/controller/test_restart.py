"""Kill -9 at any moment: the same jobs, the same leases, nothing twice, nothing stuck."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3

import pytest

from tests.controller.running import Peer, Place, Refused
from workbench.controller.agents import RESEND_S
from workbench.protocol.messages import Cancel, HeldLease, LeaseConfirmed, LeaseEnding
from workbench.protocol.telemetry import DeviceSample


async def test_after_a_kill_the_same_jobs_have_the_same_leases_and_limits(place: Place) -> None:
    """justanhduc/task-spooler#68: there, running tasks vanish from the list."""
    await place.simulate(2)
    client, agent = await place.peer(), await place.agent()
    jobs = [
        await client.submit(gpus=1, time_limit_s=600.0 + number, name=f"job {number}")
        for number in range(3)
    ]
    grants = [await agent.grant(), await agent.grant()]
    for grant in grants:
        await agent.confirm(grant)
    before = (await client.status()).jobs
    place.kill()

    await place.simulate(2)
    client = await place.peer()
    await place.agent(*(HeldLease(lease=grant.lease, job=grant.job) for grant in grants))
    after = (await client.status()).jobs
    assert [view.id for view in after] == jobs
    for old, new in zip(before, after, strict=True):
        assert (new.state, new.gpus) == (old.state, old.gpus)
        assert (new.name, new.request) == (old.name, old.request)
        assert new.place == old.place


async def test_after_a_kill_a_running_job_can_be_cancelled(place: Place) -> None:
    """jupyter-server/jupyter-scheduler: there, it sticks at STOPPING (reproduced)."""
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    grant = await agent.grant()
    await agent.confirm(grant)
    place.kill()

    await place.start()
    client = await place.peer()
    agent = await place.agent(HeldLease(lease=grant.lease, job=job))
    await client.ask(Cancel(job=job))
    assert (await agent.stop()).lease == grant.lease
    assert (await client.job(job)).state == "stopping"
    await agent.over(grant.lease, LeaseEnding(outcome="killed"))
    view = await client.job(job)
    assert (view.state, view.outcome) == ("ended", "cancelled")


async def test_a_grant_that_was_not_confirmed_is_sent_again(place: Place) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    first = await agent.grant()
    place.kill()

    await place.start()
    agent = await place.agent()
    assert await agent.grant() == first
    await agent.confirm(first)
    assert (await (await place.peer()).job(job)).state == "running"


async def test_a_grant_that_is_not_confirmed_is_sent_again_in_time(place: Place) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    await client.submit()
    first = await agent.grant()
    assert RESEND_S < 10
    assert await agent.grant() == first
    await agent.confirm(first)


async def test_a_stop_that_was_not_confirmed_is_sent_again(place: Place) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    grant = await agent.grant()
    await agent.confirm(grant)
    await client.ask(Cancel(job=job))
    first = await agent.stop()
    place.kill()

    await place.start()
    agent = await place.agent(HeldLease(lease=grant.lease, job=job))
    assert await agent.stop() == first


async def test_a_job_that_ended_while_nobody_served_has_ended(place: Place) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    grant = await agent.grant()
    await agent.confirm(grant)
    place.kill()

    await place.start()
    ending = LeaseEnding(outcome="failed", detail="it exited with code 3")
    await place.agent(HeldLease(lease=grant.lease, job=job, ended=ending))
    view = await (await place.peer()).job(job)
    assert (view.state, view.outcome, view.reason) == ("ended", "failed", "it exited with code 3")


async def test_a_running_job_that_its_agent_does_not_know_is_lost(place: Place) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    grant = await agent.grant()
    await agent.confirm(grant)
    await agent.close()
    agent = await place.agent()
    view = await client.job(job)
    assert (view.outcome, view.reason) == ("lost", "its agent does not know it any more")


async def test_a_job_that_its_agent_started_before_it_could_say_so_runs(place: Place) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    grant = await agent.grant()
    await agent.close()
    await place.agent(HeldLease(lease=grant.lease, job=job))
    assert (await client.job(job)).state == "running"


async def test_a_lease_that_is_in_no_journal_is_stopped(place: Place) -> None:
    await place.start()
    agent = await place.peer()
    await agent.attach(HeldLease(lease="L7", job="f" * 32))
    stop = await agent.stop()
    assert (stop.lease, stop.job) == ("L7", "f" * 32)
    assert "journal was lost" in stop.reason


async def test_an_agent_that_went_away_is_seen_to_be_away(place: Place) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    await agent.close()
    job = await client.submit()
    view = await client.until(job, lambda view: "agent is not running" in view.reason)
    assert view.state == "queued"


async def test_the_newest_agent_of_a_user_gets_the_grants(place: Place) -> None:
    await place.start()
    client, old, new = await place.peer(), await place.agent(), await place.agent()
    job = await client.submit()
    assert (await new.grant()).job == job
    await old.close()
    second = await client.submit()
    assert (await new.grant()).job == second


async def test_a_lease_that_is_over_may_be_reported_again(place: Place) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    grant = await agent.grant()
    await agent.over(grant.lease)
    await agent.over(grant.lease, LeaseEnding(outcome="failed"))
    await agent.ask(LeaseConfirmed(lease=grant.lease))
    await agent.over("L99")
    assert (await client.job(job)).outcome == "done"


async def test_a_terminated_controller_ends_cleanly_and_running_jobs_go_on(place: Place) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    grant = await agent.grant()
    await agent.confirm(grant)
    place.process.send_signal(signal.SIGTERM)
    await client.lost()
    await agent.lost()
    assert place.process.communicate() == ("", "")
    assert place.process.returncode == 0
    assert not place.socket.exists()

    await place.start()
    assert (await (await place.peer()).job(job)).state == "running"


async def test_after_a_reboot_no_lease_is_left_and_waiting_jobs_wait_on(place: Place) -> None:
    await place.simulate(1)
    client, agent = await place.peer(), await place.agent()
    ran = await client.submit(gpus=1)
    waits = await client.submit(gpus=1)
    grant = await agent.grant()
    await agent.confirm(grant)
    place.kill()
    journal = sqlite3.connect(place.state / "journal.sqlite3")
    row = json.loads(journal.execute("SELECT value FROM meta WHERE key='clock'").fetchone()[0])
    row["boot_id"] = "another boot"
    with journal:
        journal.execute("UPDATE meta SET value=? WHERE key='clock'", (json.dumps(row),))
    journal.close()

    await place.simulate(1)
    client = await place.peer()
    view = await client.job(ran)
    assert (view.outcome, view.reason) == ("lost", "the host was restarted")
    assert (await client.job(waits)).state == "queued"
    agent = await place.agent()
    assert (await agent.grant()).job == waits


async def test_simulated_gpus_are_gone_once_the_simulation_was_told_to_stop(place: Place) -> None:
    await place.simulate(1)
    client = await place.peer()
    job = await client.submit(gpus=1)
    place.process.send_signal(signal.SIGTERM)
    place.process.communicate()
    await place.start()
    client = await place.peer()
    assert len(await devices(client)) == 1, "a job waits for it"
    await client.ask(Cancel(job=job))
    place.process.send_signal(signal.SIGTERM)
    place.process.communicate()
    await place.start()
    client = await place.peer()
    assert await devices(client) == ()
    with pytest.raises(Refused, match=r"NeverFits: .* no GPU on this host"):
        await client.submit(gpus=1)


async def test_a_killed_simulation_is_simulated_again(place: Place) -> None:
    await place.simulate(2)
    client = await place.peer()
    before = [device.uuid for device in await devices(client)]
    place.kill()
    await place.start()
    client = await place.peer()
    after = await devices(client)
    assert [device.uuid for device in after] == before
    assert all(device.simulated for device in after)


async def devices(client: Peer) -> tuple[DeviceSample, ...]:
    while (sample := (await client.status()).sample) is None:
        await asyncio.sleep(0.05)
    return sample.devices
