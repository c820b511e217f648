"""The journal cannot be written: refused with the reason, running jobs go on, all is well after."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controller.running import Peer, Place, Refused
from workbench.protocol.messages import Cancel


async def running_job(place: Place, *arguments: str) -> tuple[Peer, Peer, str, str]:
    await place.start("--simulate", "2xA100-SXM4-80GB", *arguments)
    client, agent = await place.peer(), await place.agent()
    job = await client.submit(gpus=1)
    grant = await agent.grant()
    await agent.confirm(grant)
    return client, agent, job, grant.lease


async def assert_refuses_and_recovers(
    client: Peer, agent: Peer, job: str, lease: str, *, mend: object
) -> None:
    """Against a controller whose journal has just become unwritable."""
    with pytest.raises(Refused, match=r"JournalUnwritten: the journal could not be written") as no:
        await client.submit(gpus=1)
    assert no.value.failure.fault == "peer"
    with pytest.raises(Refused, match="nothing changed"):
        await client.ask(Cancel(job=job))
    status = await client.status()
    assert [(view.id, view.state) for view in status.jobs] == [(job, "running")]
    assert any("could not be written" in notice for notice in status.notices)

    assert callable(mend)
    mend()
    second = await client.submit(gpus=1)
    grant = await agent.grant()
    assert grant.job == second
    assert grant.lease != lease
    await agent.confirm(grant)
    assert (await client.status()).notices == []


async def test_a_full_disk(place: Place) -> None:
    """The limit on the size of a file stands in for the disk; nobody needs to be root for it."""
    client, agent, job, lease = await running_job(place)
    pid = place.process.pid
    largest = max(path.stat().st_size for path in place.state.glob("journal*"))
    unlimited = resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
    await assert_refuses_and_recovers(
        client,
        agent,
        job,
        lease,
        mend=lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited),
    )
    place.kill()
    await place.simulate(2)
    jobs = (await (await place.peer()).status()).jobs
    assert [view.state for view in jobs] == ["running", "running"]


@pytest.fixture
async def small_disk(place: Place) -> AsyncIterator[Path]:
    if os.getuid() != 0:
        pytest.skip("NOT TESTED on a disk that is really full: only root can mount a small one")
    place.state.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "none", str(place.state)]
    mounting = await asyncio.create_subprocess_exec(*mount)
    if await mounting.wait():
        pytest.skip("NOT TESTED on a disk that is really full: this container may not mount")
    yield place.state
    await place.close()
    unmounting = await asyncio.create_subprocess_exec("umount", str(place.state))
    assert await unmounting.wait() == 0


async def test_a_disk_that_is_really_full(place: Place, small_disk: Path) -> None:
    client, agent, job, _ = await running_job(place)
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        while shutil.disk_usage(small_disk).free:
            file.write(bytes(4096))
    # What is left of the last pages that the journal has already may hold a few more entries.
    refused = False
    while not refused:
        try:
            await client.ask(Cancel(job=await client.submit(gpus=1)))
        except Refused:
            refused = True
        else:
            grant = await agent.grant()
            await agent.stop()
            await agent.over(grant.lease)
    status = await client.status()
    left = [view.id for view in status.jobs]
    assert left[0] == job
    assert any("disk is full" in notice for notice in status.notices)
    ballast.unlink()
    second = await client.submit(cores=1)
    assert (await client.job(second)).state in {"starting", "queued"}
    while not agent.pushes.empty():
        await agent.push()


async def test_a_journal_that_somebody_else_has_locked(place: Place) -> None:
    client, agent, job, lease = await running_job(place)
    other = sqlite3.connect(place.state / "journal.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    await assert_refuses_and_recovers(
        client, agent, job, lease, mend=lambda: other.execute("ROLLBACK")
    )
    other.close()


async def test_the_end_of_a_job_is_not_lost_while_the_journal_cannot_be_written(
    place: Place,
) -> None:
    client, agent, job, lease = await running_job(place)
    other = sqlite3.connect(place.state / "journal.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Refused, match="JournalUnwritten"):
        await client.submit(gpus=1)
    over = asyncio.create_task(agent.over(lease))
    assert (await client.job(job)).state == "running"
    other.execute("ROLLBACK")
    other.close()
    await over  # Answered only when it is durable.
    assert (await client.job(job)).outcome == "done"
