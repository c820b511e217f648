"""A kernel's job at the agent: held, ready, taken, watched. The test is controller and kernel."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.agent.lab import Lab, MakeLab
from workbench.agent.process import read_stat
from workbench.protocol.environment import MARK

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def kernel() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def start_ticks(pid: int) -> int:
    stat = read_stat(pid)
    assert stat is not None
    return stat.id.start_ticks


class Ticket:
    """A kernel's job; each call is a client's or the controller's."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.job = secrets.token_hex(16)
        self.gpu = f"GPU-{self.job}"
        self.lease = ""

    async def ask(self, message: object) -> object:
        assert self.lab.client is not None
        return await self.lab.client.ask(message)

    async def stage(self, kept_s: float = 600.0) -> None:
        assert (
            await self.ask(self.lab.m.StageKernel(job=self.job, kept_s=kept_s)) == self.lab.m.Done()
        )

    async def ready(self) -> None:
        """Grant it and wait until its GPU is held."""
        self.lease = await self.lab.controller.grant(self.job, gpus=[self.gpu], cores=3)
        output: Path = self.lab.ran(self.job).directory / "output.jsonl"
        await self.lab.until(output.exists)

    async def take(self, *, again: bool = False, **env: str) -> object:
        return await self.ask(self.lab.m.TakeKernel(job=self.job, env=env, again=again))

    async def start(self, kernel: subprocess.Popen[bytes]) -> object:
        named = {"pid": kernel.pid, "start_ticks": start_ticks(kernel.pid)}
        return await self.ask(self.lab.m.KernelStarted(job=self.job, **named))

    @property
    def is_confirmed(self) -> bool:
        return any(one.lease == self.lease for one in self.lab.controller.confirmed)


@pytest_asyncio.fixture(loop_scope="module")
async def ticket(lab: Lab) -> Ticket:
    one = Ticket(lab)
    await one.stage()
    return one


async def test_a_kernels_job_runs_once_its_kernel_does(
    ticket: Ticket, kernel: subprocess.Popen[bytes]
) -> None:
    lab = ticket.lab
    await ticket.ready()
    await lab.controller.grant(ticket.job, lease=ticket.lease, gpus=[ticket.gpu], cores=3)
    taken = await ticket.take(OMP_NUM_THREADS="2", CUDA_VISIBLE_DEVICES="0")
    assert isinstance(taken, lab.m.LeaseTaken)
    assert taken.environment["CUDA_VISIBLE_DEVICES"] == ticket.gpu
    assert taken.environment["OMP_NUM_THREADS"] == "2"
    assert taken.environment["MKL_NUM_THREADS"] == "3"
    assert ticket.job in taken.environment[MARK]
    assert not ticket.is_confirmed
    assert await ticket.start(kernel) == lab.m.Done()
    await lab.until(lambda: ticket.is_confirmed)
    kernel.kill()
    kernel.wait()
    assert (await lab.controller.over(ticket.lease)).outcome == "done"


async def test_only_one_kernel_takes_a_lease(ticket: Ticket) -> None:
    lab = ticket.lab
    early = await ticket.take()
    assert isinstance(early, lab.m.Failure)
    assert "has not been granted" in early.message
    await ticket.ready()
    assert isinstance(await ticket.take(), lab.m.LeaseTaken)
    second = await ticket.take()
    assert isinstance(second, lab.m.Failure)
    assert "another kernel has the lease" in second.message
    assert isinstance(await ticket.take(again=True), lab.m.LeaseTaken)
    assert await ticket.ask(lab.m.GiveBack(job=ticket.job)) == lab.m.Done()
    await lab.controller.over(ticket.lease)
    late = await ticket.take(again=True)
    assert isinstance(late, lab.m.Failure)
    assert "is over" in late.message


async def test_a_stopped_ticket_ends_and_its_kernel_may_not_start(
    ticket: Ticket, kernel: subprocess.Popen[bytes]
) -> None:
    lab = ticket.lab
    await ticket.ready()
    await ticket.take()
    reason = "it ran longer than its limit of 3 s"
    await lab.controller.stop_lease(ticket.lease, ticket.job, reason, outcome="timed out")
    over = lab.m.LeaseEnding(outcome="timed out", detail=reason)
    assert await lab.controller.over(ticket.lease) == over
    refused = await ticket.start(kernel)
    assert isinstance(refused, lab.m.Failure)
    assert refused.fault == "user"
    assert kernel.poll() is None


async def test_a_ticket_that_nobody_takes_ends_by_itself(lab: Lab) -> None:
    one = Ticket(lab)
    await one.stage(kept_s=0.3)
    await one.ready()
    assert (await lab.controller.over(one.lease)).outcome == "expired"


async def test_a_cell_is_no_kernel(lab: Lab) -> None:
    job = await lab.stage("pass")
    assert lab.client is not None
    refused = await lab.client.ask(lab.m.TakeKernel(job=job, env={}))
    assert isinstance(refused, lab.m.Failure)
    assert "is not a kernel's" in refused.message


@pytest.mark.asyncio(loop_scope="function")
async def test_an_agent_that_comes_back_says_whether_the_kernel_runs(
    make_lab: MakeLab, kernel: subprocess.Popen[bytes]
) -> None:
    lab = await make_lab()
    ready, running = Ticket(lab), Ticket(lab)
    for one in (ready, running):
        await one.stage()
        await one.ready()
    await running.take()
    await running.start(kernel)
    await lab.until(lambda: running.is_confirmed)
    attached = len(lab.controller.attached)
    os.kill(lab.agent_pid, 9)
    lab.client = await lab.connect()
    await lab.until(lambda: len(lab.controller.attached) > attached)
    told = {one.job: one for one in lab.controller.attached[-1].leases}
    assert (told[ready.job].ready, told[running.job].ready) == (True, False)
    assert not ready.is_confirmed
    assert isinstance(await ready.take(), lab.m.LeaseTaken)
