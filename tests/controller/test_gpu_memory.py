"""A GPU is free when its memory is seen to be gone: real NVML calls on scripted cards."""

from __future__ import annotations

import asyncio

from tests.controller.running import Peer, Place
from tests.stand_ins.world import GIB, Code, StubWorld
from workbench.controller.releases import NOT_SEEN
from workbench.protocol.messages import GrantPush, JobView, Status, Watch


async def start(place: Place, world: StubWorld, *, gpus: int) -> tuple[Peer, Peer]:
    world.gpus(gpus)
    place.env |= world.env
    await place.start()
    return await place.peer(), await place.agent()


async def running(client: Peer, agent: Peer) -> GrantPush:
    await client.submit(gpus=1)
    grant = await agent.grant()
    await agent.confirm(grant)
    return grant


async def next_samples(place: Place, count: int) -> None:
    """Wait until the controller has shown this many more samples."""
    watcher = await place.peer()
    seen: set[float] = set()
    status = await watcher.ask(Watch())
    while len(seen) <= count:
        assert isinstance(status, Status)
        seen.add(status.sample.at_unix_s if status.sample else 0.0)
        status = await watcher.push()
    await watcher.close()


async def test_the_next_job_waits_until_the_memory_is_gone(
    place: Place, nvml_stub: StubWorld
) -> None:
    client, agent = await start(place, nvml_stub, gpus=1)
    first = await running(client, agent)
    nvml_stub.set(first.gpus[0], processes=[(4_000_000, GIB)], used_bytes=GIB)
    waiting = await client.submit(gpus=1)
    over = asyncio.create_task(agent.over(first.lease))
    await next_samples(place, 2)
    assert not over.done()
    assert (await client.job(first.job)).state == "running"
    assert (await client.job(waiting)).state == "queued"
    await agent.assert_nothing_more()

    nvml_stub.set(first.gpus[0], processes=[], used_bytes=0)
    await over
    assert (await client.job(first.job)).reason == ""
    assert (await agent.grant()).gpus == first.gpus


async def test_memory_that_does_not_go_is_said_and_the_gpu_is_not_handed_out(
    place: Place, nvml_stub: StubWorld
) -> None:
    client, agent = await start(place, nvml_stub, gpus=1)
    first = await running(client, agent)
    nvml_stub.set(first.gpus[0], processes=[(4_000_000, GIB)], used_bytes=GIB)
    waiting = await client.submit(gpus=1)
    await agent.over(first.lease)
    ended = await client.job(first.job)
    assert (ended.outcome, ended.reason) == ("done", NOT_SEEN)
    view = await client.job(waiting)
    assert (view.state, "busy outside" in view.reason) == ("queued", True)

    nvml_stub.set(first.gpus[0], processes=[], used_bytes=0)
    assert (await agent.grant()).gpus == first.gpus


async def test_a_gpu_that_somebody_else_uses_is_scheduled_around(
    place: Place, nvml_stub: StubWorld
) -> None:
    used, free = nvml_stub.gpus(2)
    nvml_stub.set(used, processes=[(4_000_000, GIB)], used_bytes=GIB)
    place.env |= nvml_stub.env
    await place.start()
    client, agent = await place.peer(), await place.agent()
    await client.submit(gpus=1)
    assert (await agent.grant()).gpus == [free]
    waiting = await client.submit(gpus=1)
    assert "busy outside" in (await client.job(waiting)).reason


async def test_what_a_leased_gpu_holds_is_its_leases_business(
    place: Place, nvml_stub: StubWorld
) -> None:
    client, agent = await start(place, nvml_stub, gpus=1)
    grant = await running(client, agent)
    nvml_stub.set(grant.gpus[0], processes=[(4_000_000, GIB)], used_bytes=GIB)
    await next_samples(place, 2)
    waiting = await client.submit(gpus=1)
    reason = (await client.job(waiting)).reason
    assert "held by" in reason
    assert "outside" not in reason


async def test_a_driver_upgraded_under_a_live_host_holds_new_gpu_jobs_alone(
    place: Place, nvml_stub: StubWorld
) -> None:
    """canonical/ubuntu-server-documentation PR#369: running jobs go on, new NVML clients fail."""
    client, agent = await start(place, nvml_stub, gpus=2)
    grant = await running(client, agent)
    nvml_stub.fail("*", Code.LIB_RM_VERSION_MISMATCH)
    watcher = await place.peer()
    status = await watcher.ask(Watch())
    while not (isinstance(status, Status) and status.sample and status.sample.nvml.message):
        status = await watcher.push()
    await watcher.close()
    waiting = await client.submit(gpus=1, cores=1)

    def is_held(view: JobView) -> bool:
        return "driver mismatch" in view.reason

    assert (await client.until(waiting, is_held)).state == "queued"
    assert (await client.job(grant.job)).state == "running"
    nvml_stub.heal()
    assert (await agent.grant()).job == waiting


async def test_a_lost_gpu_keeps_its_lease_and_is_not_handed_out(
    place: Place, nvml_stub: StubWorld
) -> None:
    client, agent = await start(place, nvml_stub, gpus=2)
    lost, healthy = nvml_stub.uuids
    nvml_stub.lose(lost)
    await next_samples(place, 2)
    await client.submit(gpus=1)
    assert (await agent.grant()).gpus == [healthy]
    waiting = await client.submit(gpus=1)
    assert "lost" in (await client.job(waiting)).reason
    nvml_stub.heal()
    assert (await agent.grant()).gpus == [lost]
