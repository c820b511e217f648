from __future__ import annotations

import asyncio

import psutil

from tests.controller.running import Peer, Place
from tests.controller.test_protocol import HELLO, message
from workbench.controller.publisher import BACKLOG_LIMIT_BYTES
from workbench.protocol.messages import GetStatus, Status, Watch


async def test_whoever_watches_is_told_of_changes_and_of_samples(place: Place) -> None:
    await place.simulate(1)
    watcher, client = await place.peer(), await place.peer()
    now = await watcher.ask(Watch())
    assert isinstance(now, Status)
    assert now.jobs == []
    job = await client.submit()
    status = now
    while not status.jobs:
        pushed = await watcher.push()
        assert isinstance(pushed, Status)
        status = pushed
    assert [view.id for view in status.jobs] == [job]
    assert now.sample is not None
    while status.sample is None or status.sample.at_unix_s <= now.sample.at_unix_s:
        pushed = await watcher.push()
        assert isinstance(pushed, Status)
        status = pushed
    await watcher.close()


async def test_whoever_watches_one_job_is_told_of_that_job_alone(place: Place) -> None:
    await place.start()
    watcher, client, agent = await place.peer(), await place.peer(), await place.agent()
    job = await client.submit(cores=1)
    grant = await agent.grant()
    await agent.confirm(grant)
    now = await watcher.ask(Watch(job=job))
    assert isinstance(now, Status)
    assert [view.state for view in now.jobs] == ["running"]
    other = await client.submit(cores=1, wait_limit_s=0.1)
    await client.until(other, lambda view: view.state in {"ended", "starting"})
    while not agent.pushes.empty():
        await agent.over((await agent.grant()).lease)
    await agent.over(grant.lease)
    pushed = await watcher.push()
    assert isinstance(pushed, Status)
    assert pushed.jobs == []
    assert [(view.id, view.outcome) for view in pushed.ended] == [(job, "done")]
    await watcher.assert_nothing_more()


async def test_a_job_that_nobody_knows_is_watched_as_nothing(place: Place) -> None:
    await place.start()
    status = await (await place.peer()).ask(Watch(job="0" * 32))
    assert isinstance(status, Status)
    assert (status.jobs, status.ended) == ([], [])


def resident_bytes(place: Place) -> int:
    return psutil.Process(place.process.pid).memory_info().rss


async def crowded(place: Place) -> Peer:
    """A lab whose status is a few hundred kilobytes long."""
    await place.start()
    client = await place.peer()
    for _ in range(500):
        await client.submit(cores=1, name="n" * 200)
    return client


async def test_a_client_that_asks_and_never_reads_costs_little_and_hinders_nobody(
    place: Place,
) -> None:
    client = await crowded(place)
    before = resident_bytes(place)
    _, writer = await asyncio.open_unix_connection(place.socket)
    writer.write(HELLO + b"".join(message(2 + n, GetStatus()) for n in range(3000)))
    for _ in range(100):
        await client.submit(cores=1)
    assert len((await client.status()).jobs) == 600
    assert resident_bytes(place) - before < 100 * 2**20
    writer.transport.abort()


async def test_a_watcher_that_never_reads_is_skipped(place: Place) -> None:
    client = await crowded(place)
    before = resident_bytes(place)
    writers = []
    for _ in range(30):
        _, writer = await asyncio.open_unix_connection(place.socket)
        writer.write(HELLO + message(2, Watch()))
        writers.append(writer)
    watcher = await place.peer()
    await watcher.ask(Watch())
    for _ in range(12):
        await client.submit(cores=1)
        await watcher.push()
    await watcher.close()
    # Each of them has at most the limit and one status unread, not twelve.
    assert resident_bytes(place) - before < 30 * 3 * BACKLOG_LIMIT_BYTES
    for writer in writers:
        writer.transport.abort()
