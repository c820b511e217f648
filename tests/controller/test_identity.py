"""Who may do what: the socket's peer decides, and refusals are logged. Needs root for real uids."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.controller.running import PATIENCE_S, Peer, Place
from workbench.protocol.messages import Cancel, LeaseEnding

pytestmark = pytest.mark.skipif(
    os.getuid() != 0,
    reason="NOT TESTED: other users' rights on the socket; only root can be another user",
)

STRANGER = 54321
ANOTHER = 54322
NOBODY = 65534

AS_USER = """
import asyncio, json, os, sys
from pathlib import Path
import msgspec
from tests.controller.running import Peer, Refused
from workbench.protocol import messages
from workbench.transport import connection, errors

async def main(socket, uid, requests):
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
    raw = await connection.connect(socket, messages.ControllerReply, trusted_uids=(0,))
    peer = Peer(raw, socket)
    answers = []
    hello = messages.Hello(protocol=messages.PROTOCOL, software="test")
    for request in [hello, *requests]:
        try:
            answers.append(await peer.ask(request))
        except Refused as refused:
            answers.append(refused.failure)
        except errors.ConnectionLost:
            answers.append(None)
            break
    await peer.close()
    print(msgspec.json.encode(answers).decode())

requests = msgspec.json.decode(sys.argv[3], type=list[messages.ControllerRequest])
asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), requests))
"""


async def ask_as(place: Place, uid: int, *requests: dict[str, Any]) -> list[Any]:
    """What the controller answers to another user's requests (the greeting's is left out)."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        AS_USER,
        str(place.socket),
        str(uid),
        json.dumps(requests),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 0
    answers: list[Any] = json.loads(output)
    return answers[1:] if len(answers) > 1 else answers


@pytest.fixture
async def lab(place: Place) -> AsyncIterator[Place]:
    """A lab's controller that every user may connect to."""
    directory = Path(tempfile.mkdtemp(prefix="wb-"))
    place.socket = directory / "controller.sock"
    await place.start("--socket", str(directory), "--simulate", "2xA100-SXM4-80GB")
    yield place
    place.process.terminate()
    await asyncio.to_thread(place.process.wait, PATIENCE_S)
    (directory / "controller.lock").unlink()
    directory.rmdir()


async def running_job(lab: Place) -> tuple[Peer, str, str]:
    client, agent = await lab.peer(), await lab.agent()
    await client.submit(name="secret plan", cores=1)
    grant = await agent.grant()
    await agent.confirm(grant)
    return client, grant.job, grant.lease


async def test_a_stranger_cannot_cancel_my_job_and_the_attempt_is_logged(lab: Place) -> None:
    client, job, _ = await running_job(lab)
    [answer] = await ask_as(lab, STRANGER, {"type": "Cancel", "job": job})
    assert (answer["type"], answer["error"]) == ("Failure", "NotYours")
    assert (await client.job(job)).state == "running"
    assert f"refused: uid {STRANGER} asked to act on job {job}" in lab.log


async def test_a_stranger_cannot_speak_for_my_agent(lab: Place) -> None:
    client, job, lease = await running_job(lab)
    over = {"type": "LeaseOver", "lease": lease, "ending": {"outcome": "done"}}
    confirmed = {"type": "LeaseConfirmed", "lease": lease}
    attach = {"type": "Attach", "leases": []}
    answers = await ask_as(lab, STRANGER, over, confirmed, attach)
    assert [answer.get("error") for answer in answers] == ["NotYours", "NotYours", None]
    assert (await client.job(job)).state == "running"


async def test_a_stranger_sees_that_my_job_runs_and_neither_name_nor_end(lab: Place) -> None:
    client, job, lease = await running_job(lab)
    [status] = await ask_as(lab, STRANGER, {"type": "GetStatus"})
    [view] = status["jobs"]
    assert (view["id"], view["owner_uid"], view["state"]) == (job, 0, "running")
    assert (view["mine"], view["name"], view["notebook"]) == (False, None, None)
    assert "secret" not in json.dumps(status)
    [status] = await ask_as(lab, STRANGER, {"type": "Watch", "job": job})
    assert status["jobs"][0]["name"] is None
    ending = LeaseEnding(outcome="failed", detail="NameError: secret")
    await client.over(lease, ending)
    [status] = await ask_as(lab, STRANGER, {"type": "GetStatus"})
    assert status["ended"][0]["outcome"] == "failed"
    assert "secret" not in json.dumps(status)


async def test_the_owner_of_a_job_is_who_the_kernel_says_and_an_admin_may_cancel_it(
    lab: Place,
) -> None:
    job = "a" * 32
    submit = {"type": "Submit", "job": job, "name": "theirs", "request": {"kind": "cell"}}
    await ask_as(lab, STRANGER, submit)
    admin = await lab.peer()
    view = await admin.job(job)
    assert (view.owner_uid, view.mine, view.name) == (STRANGER, False, None)
    [answer] = await ask_as(lab, ANOTHER, {"type": "Cancel", "job": job})
    assert answer["error"] == "NotYours"
    await admin.ask(Cancel(job=job))
    [status] = await ask_as(lab, STRANGER, {"type": "GetStatus"})
    [ended] = status["ended"]
    assert (ended["mine"], ended["outcome"]) == (True, "cancelled")
    assert "cancelled by uid 0, an administrator" in ended["reason"]


async def test_a_users_grants_go_to_that_users_agent_alone(lab: Place) -> None:
    agent = await lab.agent()
    job = "b" * 32
    submit = {"type": "Submit", "job": job, "name": "theirs", "request": {"kind": "cell"}}
    await ask_as(lab, STRANGER, submit, {"type": "Attach", "leases": []})
    view = await agent.job(job)
    assert view.state in {"starting", "queued"}
    await agent.assert_nothing_more()


async def test_a_job_id_that_is_taken_by_another_user_is_refused(lab: Place) -> None:
    client, job, _ = await running_job(lab)
    submit = {"type": "Submit", "job": job, "name": "x", "request": {"kind": "cell"}}
    [answer] = await ask_as(lab, STRANGER, submit)
    assert (answer["type"], answer["fault"]) == ("Failure", "user")
    assert (await client.job(job)).owner_uid == 0


async def test_a_user_that_the_kernel_cannot_name_gets_no_answer(lab: Place) -> None:
    assert await ask_as(lab, NOBODY, {"type": "GetStatus"}) == [None]
    assert await ask_as(lab, STRANGER, {"type": "GetStatus"}) != [None]
