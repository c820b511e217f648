"""Grants and stops are orders that may come twice, late, or for nobody."""

from __future__ import annotations

import json
import os
import secrets

import pytest

from tests.agent.lab import Lab

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_two_grants_of_one_lease_start_it_once(lab: Lab) -> None:
    path = lab.place / "twice"
    source = """
import os, time
open(path, "a").write("started\\n")
print("READY")
while not os.path.exists(path + ".go"): time.sleep(0.01)
"""
    job = await lab.stage(source, path=str(path))
    lease = await lab.controller.grant(job)
    await lab.controller.grant(job, lease=lease)
    await lab.ready(job)
    await lab.controller.running(lease)
    shim = lab.shim(job)
    seen = len(lab.controller.confirmed)
    await lab.controller.grant(job, lease=lease)
    await lab.until(lambda: len(lab.controller.confirmed) > seen)
    path.with_name("twice.go").touch()
    await lab.controller.over(lease)
    seen = len(lab.controller.overs)
    await lab.controller.grant(job, lease=lease)
    await lab.until(lambda: len(lab.controller.overs) > seen)
    assert lab.shim(job) == shim
    assert {one.ending.outcome for one in lab.controller.overs if one.lease == lease} == {"done"}
    assert path.read_text() == "started\n"


@pytest.mark.parametrize("job", ["0" * 32, "../../etc", "", "x" * 5000])
async def test_a_grant_or_stop_for_a_job_that_is_not_here_is_lost(lab: Lab, job: str) -> None:
    lease = await lab.controller.grant(job)
    assert await lab.controller.over(lease) == lab.m.LeaseEnding(
        outcome="lost", detail="its files are gone from this machine"
    )
    stopped = f"{lease}-stopped"
    await lab.controller.stop_lease(stopped, job)
    assert (await lab.controller.over(stopped)).outcome == "lost"


async def test_a_second_lease_for_the_same_job_is_refused(lab: Lab) -> None:
    job = await lab.stage("pass")
    await lab.controller.over(await lab.controller.grant(job))
    second = await lab.controller.grant(job)
    assert (await lab.controller.over(second)).outcome == "lost"


async def test_a_stop_before_the_grant_keeps_the_job_from_ever_starting(lab: Lab) -> None:
    path = lab.place / "never"
    job = await lab.stage("open(path, 'a')", path=str(path))
    await lab.controller.stop_lease("L-early", job)
    assert (await lab.controller.over("L-early")).outcome == "cancelled"
    seen = len(lab.controller.overs)
    await lab.controller.grant(job, lease="L-early")
    await lab.until(lambda: len(lab.controller.overs) > seen)
    assert lab.controller.overs[-1].ending.outcome == "cancelled"
    assert not path.exists()


async def test_a_stop_on_the_heels_of_its_grant_ends_the_job(lab: Lab) -> None:
    job = await lab.stage("import time; time.sleep(600)")
    lease = await lab.controller.grant(job)
    await lab.controller.stop_lease(lease, job)
    assert (await lab.controller.over(lease)).outcome == "cancelled"


async def test_an_interrupt_before_the_grant_keeps_the_job_from_ever_starting(lab: Lab) -> None:
    path = lab.place / "interrupted"
    job = await lab.stage("open(path, 'a')", path=str(path))
    await lab.client.done(lab.m.Interrupt(job=job))
    ending = await lab.controller.over(await lab.controller.grant(job))
    assert (ending.outcome, ending.detail) == ("cancelled", "interrupted by its owner")
    assert not path.exists()


async def test_an_interrupt_on_the_heels_of_its_grant_is_heard(lab: Lab) -> None:
    job = await lab.stage("import time; time.sleep(600)")
    lease = await lab.controller.grant(job)
    await lab.until((lab.jobs / job / "lease.json").exists)
    await lab.client.done(lab.m.Interrupt(job=job))
    assert (await lab.controller.over(lease)).outcome in {"failed", "cancelled"}


async def test_a_job_is_staged_once_and_by_its_own_session(lab: Lab) -> None:
    job = lab.prepare("pass")
    stage = lab.m.Stage(job=job, session=lab.session)
    await lab.client.done(stage)
    await lab.client.done(stage)
    other = await lab.client.ask(lab.m.Stage(job=lab.prepare("pass"), session="0" * 32))
    assert other.error == "NotHere"
    await lab.client.done(lab.m.Discard(job=job))


@pytest.mark.parametrize("job", ["0" * 32, "../../etc", ""])
async def test_an_incomplete_or_misnamed_directory_is_not_taken_over(lab: Lab, job: str) -> None:
    answer = await lab.client.ask(lab.m.Stage(job=job, session=lab.session))
    assert (answer.fault, answer.error) == ("user", "NotComplete")


async def test_a_job_of_another_protocol_is_refused_with_both_numbers(lab: Lab) -> None:
    job = lab.prepare("pass")
    path = lab.jobs / job / "job.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "protocol": 99}))
    answer = await lab.client.ask(lab.m.Stage(job=job, session=lab.session))
    assert answer.error == "ProtocolMismatch"
    assert "99" in answer.message
    assert str(lab.m.PROTOCOL) in answer.message


async def test_a_discarded_job_is_gone_and_a_running_one_is_not_discarded(lab: Lab) -> None:
    job = await lab.stage("pass")
    await lab.client.done(lab.m.Discard(job=job))
    assert not (lab.jobs / job).exists()
    await lab.client.done(lab.m.Discard(job=job))
    job, lease, _ = await lab.begin("print('READY')\nimport time; time.sleep(600)")
    answer = await lab.client.ask(lab.m.Discard(job=job))
    assert answer.error == "StillRunning"
    await lab.controller.stop_lease(lease, job)
    await lab.controller.over(lease)


async def test_following_and_interrupting_need_a_job(lab: Lab) -> None:
    for message in (lab.m.Follow(job="0" * 32), lab.m.Interrupt(job="0" * 32)):
        answer = await lab.client.ask(message)
        assert (answer.fault, answer.error) == ("user", "NotHere")


async def test_followers_hear_of_each_line_at_once_and_of_the_end_last(lab: Lab) -> None:
    source = """
import os, time
for n in range(3):
    print(n)
    while not os.path.exists(f"{path}{n}"): time.sleep(0.005)
"""
    path = lab.place / "next"
    job = await lab.stage(source, path=str(path))
    client = await lab.connect()
    await client.done(lab.m.Follow(job=job))
    await lab.controller.grant(job)
    for n in range(3):
        await lab.until(lambda n=n: lab.ran(job).text() == "".join(f"{i}\n" for i in range(n + 1)))
        size = (lab.jobs / job / "output.jsonl").stat().st_size
        await lab.until(lambda size=size: lab.m.Advanced(job=job, size_bytes=size) in client.pushes)
        (lab.place / f"next{n}").touch()
    await client.over(job)
    *sizes, last = client.pushes
    assert isinstance(last, lab.m.JobOver)
    assert sizes[-1].size_bytes == (lab.jobs / job / "output.jsonl").stat().st_size
    assert [one.size_bytes for one in sizes] == sorted({one.size_bytes for one in sizes})
    late = await lab.connect()
    await late.done(lab.m.Follow(job=job))
    assert (await late.over(job)).ending.outcome == "done"
    for one in (client, late):
        await one.close()


async def test_what_the_agent_writes_is_nobody_elses_to_read(lab: Lab) -> None:
    ran = await lab.run("print('secret')")
    assert (ran.directory.stat().st_mode & 0o777) == 0o700
    for path in [*ran.directory.iterdir(), *lab.runtime.glob("*.*")]:
        if path.name not in {"inputs.pickle", "result.pickle", "buffers.bin"}:
            assert (path.stat().st_mode & 0o077) == 0, path
    logs = b"".join(path.read_bytes() for path in lab.runtime.glob("*.log"))
    assert b"secret" not in logs


async def test_another_protocol_is_refused_with_both_numbers_and_the_command(lab: Lab) -> None:
    from workbench.transport.connection import connect

    connection = await connect(
        lab.runtime / "agent.sock", lab.m.AgentReply, trusted_uids=(os.getuid(),)
    )
    connection.send(1, lab.m.Hello(protocol=99, software="new"))
    _, answer = await connection.receive()
    assert answer.error == "ProtocolMismatch"
    assert "99" in answer.message
    assert "workbench down" in answer.next_step
    await connection.close()


async def test_a_session_id_is_no_path(lab: Lab) -> None:
    opening = lab.opening("../" + secrets.token_hex(15)[:29])
    answer = await lab.client.ask(opening)
    assert answer.error == "NotComplete"
