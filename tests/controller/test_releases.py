"""When a lease ends that held a GPU: which sample counts."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path

import msgspec

from tests.controller.test_driver import ME, Clock, Recorder
from tests.controller.test_observer import GIB, PROCESS, card, sample
from workbench.controller.driver import Driver
from workbench.controller.releases import NOT_SEEN, Releases
from workbench.core.decisions import Grant
from workbench.core.events import AgentConnected, DeviceSeen, HostSeen, JobSubmitted
from workbench.core.model import DeviceId, DeviceStatus, JobId, LeaseId, Outcome, Request
from workbench.journal.journal import Journal
from workbench.protocol.telemetry import DeviceSample, Sample, SampleStatus

JOB = JobId("a" * 32)


async def leased(
    journal: Journal, *, simulated: bool = False, share_bytes: int | None = None
) -> tuple[Driver, LeaseId]:
    recorder = Recorder(journal)
    driver = Driver(
        scheduler=recorder.restore(),
        restore=recorder.restore,
        journal=recorder,
        clock=Clock(),
        carry_out=recorder.carry_out,
        on_change=lambda: None,
    )
    await driver.note(partial(HostSeen, cores=4, memory_bytes=GIB))
    await driver.note(partial(AgentConnected, owner=ME))
    await driver.note(
        partial(
            DeviceSeen,
            device=DeviceId("GPU-a"),
            model="A100",
            memory_bytes=80 * GIB,
            simulated=simulated,
        )
    )
    request = Request(gpus=1, share_bytes=share_bytes)
    [grant] = await driver.ask(
        partial(JobSubmitted, job=JOB, owner=ME, request=request, name="x", notebook=None)
    )
    assert isinstance(grant, Grant)
    return driver, grant.lease


def taken(device: DeviceSample, *, after_s: float) -> Sample:
    return msgspec.structs.replace(sample(device), at_unix_s=time.time() + after_s)


async def is_over(over: asyncio.Future[None]) -> bool:
    for _ in range(3):
        await asyncio.sleep(0)
    return over.done()


async def test_only_a_fresh_sample_without_a_process_frees_a_gpu(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal") as journal:
        driver, lease = await leased(journal)
        releases = Releases(driver, latest=lambda: None)
        over = releases.release(lease, Outcome.DONE, "")
        for not_enough in (
            taken(card(), after_s=-1.0),
            taken(card(processes=(PROCESS,)), after_s=1.0),
            taken(card(used_bytes=GIB), after_s=1.0),
            taken(card(status=SampleStatus.STALE), after_s=1.0),
            taken(card(status=SampleStatus.LOST), after_s=1.0),
            taken(card("GPU-b"), after_s=1.0),
        ):
            releases.on_sample(not_enough)
            assert not await is_over(over)
        releases.on_sample(taken(card(), after_s=1.0))
        await asyncio.wait_for(over, 10)
        assert driver.state.ended[JOB].detail == ""
        driver.close()


async def test_a_simulated_gpu_has_no_memory_to_wait_for(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal") as journal:
        driver, lease = await leased(journal, simulated=True)
        releases = Releases(driver, latest=lambda: None)
        await asyncio.wait_for(releases.release(lease, Outcome.DONE, ""), 10)
        assert driver.state.ended[JOB].outcome is Outcome.DONE
        driver.close()


async def test_memory_that_cannot_be_seen_is_said_after_a_while(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal") as journal:
        driver, lease = await leased(journal)
        releases = Releases(driver, latest=lambda: None, patience_s=0.05)
        first = releases.release(lease, Outcome.KILLED, "signal 9")
        again = releases.release(lease, Outcome.DONE, "told twice")
        await asyncio.wait_for(asyncio.gather(first, again), 10)
        ended = driver.state.ended[JOB]
        assert (ended.outcome, ended.detail) == (Outcome.KILLED, f"signal 9; {NOT_SEEN}")
        driver.close()


async def test_of_a_gpu_that_others_share_no_memory_is_waited_for(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal") as journal:
        driver, lease = await leased(journal, share_bytes=GIB)
        other = partial(JobSubmitted, job=JobId("b" * 32), owner=ME, name="y", notebook=None)
        releases = Releases(driver, latest=lambda: None)
        over = releases.release(lease, Outcome.DONE, "")
        in_use = card(processes=(PROCESS,))
        releases.on_sample(taken(in_use, after_s=1.0))
        assert not await is_over(over)
        await driver.ask(partial(other, request=Request(gpus=1, share_bytes=GIB)))
        releases.on_sample(taken(in_use, after_s=2.0))
        await asyncio.wait_for(over, 10)
        assert driver.state.ended[JOB].detail == ""
        driver.close()


async def test_a_gpu_that_others_share_is_not_marked_busy_for_what_they_hold(
    tmp_path: Path,
) -> None:
    with Journal.open(tmp_path / "journal") as journal:
        driver, lease = await leased(journal, share_bytes=GIB)
        request = Request(gpus=1, share_bytes=GIB)
        other = partial(JobSubmitted, job=JobId("b" * 32), owner=ME, name="y", notebook=None)
        await driver.ask(partial(other, request=request))
        in_use = taken(card(processes=(PROCESS,)), after_s=1.0)
        releases = Releases(driver, latest=lambda: in_use, patience_s=0.05)
        await asyncio.wait_for(releases.release(lease, Outcome.DONE, ""), 10)
        assert driver.state.devices[DeviceId("GPU-a")].status is DeviceStatus.AVAILABLE
        driver.close()
