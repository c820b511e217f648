from __future__ import annotations

import pytest

from tests.controller.running import Place, Refused, new_id
from workbench.protocol.messages import Cancel, LeaseEnding, RequestSpec, Submit


async def test_a_job_goes_from_submission_through_its_lease_to_its_end(place: Place) -> None:
    await place.simulate(2)
    client, agent = await place.peer(), await place.agent()
    job = await client.submit(gpus=1)
    grant = await agent.grant()
    assert grant.job == job
    assert grant.simulated
    assert (await client.job(job)).state == "starting"

    await agent.confirm(grant)
    view = await client.job(job)
    assert (view.state, view.gpus) == ("running", grant.gpus)
    assert view.reason == "", "a job whose turn it was needs no reason"

    await agent.over(grant.lease)
    view = await client.job(job)
    assert (view.state, view.outcome, view.place) == ("ended", "done", None)


async def test_the_end_that_the_agent_reports_is_shown(place: Place) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit()
    grant = await agent.grant()
    await agent.over(grant.lease, LeaseEnding(outcome="killed", detail="signal 9"))
    view = await client.job(job)
    assert (view.outcome, view.reason) == ("killed", "signal 9")


async def test_of_100_one_gpu_jobs_on_5_gpus_exactly_5_run(place: Place) -> None:
    """jupyter-server/jupyter-scheduler#447: there, all of them start at once."""
    await place.simulate(5)
    client, agent = await place.peer(), await place.agent()
    jobs = [await client.submit(gpus=1, cores=1) for _ in range(100)]
    grants = [await agent.grant() for _ in range(5)]
    await agent.assert_nothing_more()
    assert [grant.job for grant in grants] == jobs[:5]
    assert len({gpu for grant in grants for gpu in grant.gpus}) == 5
    views = (await client.status()).jobs
    assert [view.state for view in views] == ["starting"] * 5 + ["queued"] * 95
    assert [view.place for view in views[5:]] == list(range(1, 96))

    await agent.over(grants[0].lease)
    assert (await agent.grant()).gpus == grants[0].gpus


async def test_a_job_that_can_never_run_is_refused_with_the_largest_that_would_fit(
    place: Place,
) -> None:
    await place.simulate(8)
    client = await place.peer()
    with pytest.raises(Refused, match=r"NeverFits: .* 8 GPUs"):
        await client.submit(gpus=9)
    with pytest.raises(Refused, match="the largest GPU of this host has 80 GiB"):
        await client.submit(gpus=1, gpu_memory_bytes=100 * 2**30)
    with pytest.raises(Refused, match="NeverFits"):
        await client.submit(cores=100_000)
    assert (await client.status()).jobs == []


async def test_on_a_host_without_a_gpu_a_gpu_job_is_refused(place: Place) -> None:
    await place.start()
    client = await place.peer()
    with pytest.raises(Refused, match="no GPU on this host"):
        await client.submit(gpus=1)


async def test_a_repeated_submission_is_one_job(place: Place) -> None:
    await place.start()
    client = await place.peer()
    job = await client.submit(cores=1)
    await client.submit(job=job, cores=1)
    assert [view.id for view in (await client.status()).jobs] == [job]
    with pytest.raises(Refused, match="belongs to another job"):
        await client.submit(job=job, cores=1, priority="low")


@pytest.mark.parametrize(
    ("submission", "says"),
    [
        (Submit(job="../../etc", request=RequestSpec(kind="cell"), name="x"), "32 hexadecimal"),
        (Submit(job=new_id(), request=RequestSpec(kind="cell"), name="x" * 201), "200 characters"),
        (Submit(job=new_id(), request=RequestSpec(kind="cell", gpus=-1), name="x"), "gpus=-1"),
        (Submit(job=new_id(), request=RequestSpec(kind="cell", cores=0), name="x"), "cores=0"),
        (
            Submit(job=new_id(), request=RequestSpec(kind="cell"), name="x", notebook="n" * 5000),
            "4096",
        ),
    ],
)
async def test_a_submission_that_is_not_well_formed_is_refused(
    place: Place, submission: Submit, says: str
) -> None:
    await place.start()
    client = await place.peer()
    with pytest.raises(Refused, match=says):
        await client.ask(submission)
    assert (await client.status()).jobs == []


async def test_a_job_without_an_agent_waits_and_says_so(place: Place) -> None:
    await place.start()
    client = await place.peer()
    job = await client.submit()
    view = await client.job(job)
    assert view.state == "queued"
    assert "agent is not running" in view.reason
    agent = await place.agent()
    assert (await agent.grant()).job == job


async def test_a_job_that_waited_longer_than_its_limit_leaves_the_queue(place: Place) -> None:
    await place.start()
    client = await place.peer()
    job = await client.submit(wait_limit_s=0.2)
    view = await client.until(job, lambda view: view.state == "ended")
    assert view.outcome == "expired"


async def test_a_job_that_ran_longer_than_its_limit_is_stopped(place: Place) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    job = await client.submit(time_limit_s=0.2)
    grant = await agent.grant()
    await agent.confirm(grant)
    stop = await agent.stop()
    assert (stop.lease, stop.job) == (grant.lease, job)
    await agent.over(grant.lease, LeaseEnding(outcome="killed"))
    assert (await client.job(job)).outcome == "timed out"


async def test_a_stop_says_which_outcome_it_is_for(place: Place) -> None:
    await place.start()
    client, agent = await place.peer(), await place.agent()
    for limit_s, outcome in ((0.05, "timed out"), (None, "cancelled")):
        job = await client.submit(time_limit_s=limit_s)
        grant = await agent.grant()
        await agent.confirm(grant)
        if limit_s is None:
            await client.ask(Cancel(job=job))
        stop = await agent.stop()
        assert (stop.lease, stop.outcome) == (grant.lease, outcome)
        await agent.over(grant.lease, LeaseEnding(outcome=outcome, detail=stop.reason))
        assert (await client.job(job)).outcome == outcome
