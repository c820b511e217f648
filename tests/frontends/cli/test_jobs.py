from __future__ import annotations

import asyncio
import os
import sys

import pytest

from tests.controller.running import PATIENCE_S, Place, new_id
from tests.frontends.cli.conftest import CommandLine
from workbench.protocol.messages import LeaseEnding


async def test_status_and_jobs_show_the_lab_in_80_columns(
    place: Place, workbench: CommandLine
) -> None:
    await place.simulate(2)
    client, agent = await place.peer(), await place.agent()
    job = await client.submit(gpus=1, name="a name that is much longer than fits " * 3)
    grant = await agent.grant()
    await agent.confirm(grant)
    waiting = await client.submit(gpus=2, time_limit_s=60.0)

    status = await workbench("status")
    assert (status.code, status.err) == (0, "")
    assert "SIMULATED" in status.out.splitlines()[0]
    assert f"root ({job[:8]})" in status.out or f"({job[:8]})" in status.out
    assert f"{job[:8]}  running" in status.out
    assert f"{waiting[:8]}  queued" in status.out
    assert "place 1: it waits for 2 GPUs, 1 free" in " ".join(status.out.split())
    assert "start: unknown" in status.out

    jobs = await workbench("jobs")
    assert jobs.out.startswith("SIMULATED")
    assert [view["id"] for view in (await workbench("jobs", "--json")).json()] == [job, waiting]
    assert (await workbench("status", "--json")).json()["controller"]["simulated"] is True


async def test_an_ended_job_is_shown_with_its_end(place: Place, workbench: CommandLine) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    grant = await agent.grant()
    await agent.over(grant.lease, LeaseEnding(outcome="failed", detail="NameError: x"))
    jobs = await workbench("jobs", "--mine")
    assert f"{job[:8]}  failed" in jobs.out
    assert "NameError: x" in jobs.out
    assert job[:8] not in (await workbench("status")).out


async def test_a_name_cannot_steer_the_terminal_of_whoever_looks(
    place: Place, workbench: CommandLine
) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit(name="\x1b[2Jgone\u202e\n")
    grant = await agent.grant()
    await agent.over(grant.lease, LeaseEnding(outcome="failed", detail="E: \x1b]0;title\x07"))
    for words in (["jobs"], ["jobs", "--json"]):
        said = await workbench(*words)
        assert "\x1b" not in said.out
        assert "\u202e" not in said.out
        assert "gone" in said.out
        assert "title" in said.out
    view = await client.job(job)
    assert (view.name, view.reason) == ("\\x1b[2Jgone\\u202e\\n", "E: \\x1b]0;title\\x07")


async def test_an_empty_id_names_no_job(place: Place, workbench: CommandLine) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    grant = await agent.grant()
    said = await workbench("cancel", "")
    assert (said.code, "an empty id names no job" in said.err) == (1, True)
    assert (await client.job(job)).state == "starting"
    await agent.over(grant.lease)


async def test_a_prefix_that_only_one_job_has_is_enough_to_cancel(
    place: Place, workbench: CommandLine
) -> None:
    await place.start()
    client = await place.peer()
    first, second = f"aa11{new_id()[4:]}", f"aa22{new_id()[4:]}"
    for job in (first, second):
        await client.submit(job=job, cores=1)
    ambiguous = await workbench("cancel", "aa")
    assert ambiguous.code == 1
    assert "2 jobs' ids begin with 'aa'" in ambiguous.err
    assert "1 more" not in ambiguous.err
    missing = await workbench("cancel", "aa1", "zz")
    assert (missing.code, "no job's id begins with 'zz'" in missing.err) == (1, True)
    assert (await client.job(first)).state == "queued"

    done = await workbench("cancel", "aa1")
    assert (done.code, done.out) == (0, f"{first[:8]}  cancelled\n")
    assert (await client.job(first)).outcome == "cancelled"
    assert (await client.job(second)).state == "queued"
    again = await workbench("cancel", "aa", "--json")
    assert [view["id"] for view in again.json()] == [second]


async def test_a_running_job_is_shown_as_stopping_after_a_cancel(
    place: Place, workbench: CommandLine
) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    grant = await agent.grant()
    await agent.confirm(grant)
    assert (await workbench("cancel", job)).out == f"{job[:8]}  stopping\n"
    assert (await agent.stop()).lease == grant.lease
    await agent.over(grant.lease)


@pytest.mark.parametrize("verb", ["status", "jobs", "cancel"])
async def test_without_a_controller_a_command_says_how_to_start_one(
    workbench: CommandLine, verb: str
) -> None:
    words = [verb, "abc"] if verb == "cancel" else [verb]
    said = await workbench(*words)
    assert (said.code, said.out) == (3, "")
    assert "`workbench up`" in said.err
    error = (await workbench(*words, "--json")).json()
    assert error["error"] == "NobodyListens"
    assert "workbench up" in error["next_step"]
    assert not workbench.place.socket.exists()


@pytest.mark.parametrize("words", [["jobs", "--json"], ["doctor"]])
async def test_a_reader_that_goes_away_ends_a_command_quietly(
    place: Place, words: list[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "workbench.frontends.cli",
        *words,
        env=place.env,
        stdout=writer,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(writer)
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert (process.returncode, err) == (0, b"")


async def test_a_lab_that_is_down_is_named_and_nothing_is_started(workbench: CommandLine) -> None:
    workbench.place.env["WORKBENCH_CONTROLLER"] = str(workbench.place.root / "lab")
    said = await workbench("status")
    assert said.code == 3
    assert "WORKBENCH_CONTROLLER" in said.err


@pytest.mark.parametrize("words", [[], ["nonsense"], ["cancel"], ["status", "--nonsense"]])
async def test_a_command_line_that_cannot_be_read_is_code_2(
    workbench: CommandLine, words: list[str]
) -> None:
    assert (await workbench(*words)).code == 2


async def test_the_help_lists_every_verb_and_exit_code(workbench: CommandLine) -> None:
    said = await workbench("--help")
    assert said.code == 0
    for word in ("status", "jobs", "cancel", "up", "down", "doctor", "Exit codes", "3  controller"):
        assert word in said.out
    assert (await workbench("--version")).out.startswith("gpu-workbench ")
