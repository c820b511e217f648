from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.core.builders import Lab, gpu
from workbench.core.errors import BrokenInvariant
from workbench.core.invariants import check
from workbench.core.job import Deadline
from workbench.core.model import DeviceId, DeviceStatus, JobId, JobState, LeaseId
from workbench.core.state import State


def busy_lab() -> Lab:
    lab = Lab(gpus=2)
    lab.submit("a", gpus=1, time_limit_s=10)
    lab.submit("b", gpus=1)
    lab.submit("w", gpus=1)
    lab.submit("e")
    lab.start("a")
    lab.end("e")
    return lab


def change(job: str, **fields: object) -> Callable[[State], None]:
    def do(state: State) -> None:
        state.jobs[JobId(job)] = replace(state.jobs[JobId(job)], **fields)  # type: ignore[arg-type]

    return do


def lease_twice(state: State) -> None:
    a, b = (state.jobs[JobId(job)].grant for job in "ab")
    assert a
    assert b
    change("b", grant=replace(b, units=a.units))(state)


BREAKS: dict[str, tuple[Callable[[State], object], str]] = {
    "a GPU is leased twice": (lease_twice, "is leased to L0 and L1"),
    "a holder is wrong": (lambda s: s.holders.pop(gpu(0)), "holders are"),
    "cores are not counted": (lambda s: setattr(s, "leased_cores", 1), "leased cores are 1"),
    "memory is not counted": (lambda s: setattr(s, "leased_memory_bytes", 1), "memory is 1"),
    "a lease is forgotten": (lambda s: s.leases.pop(LeaseId("L0")), "leases are"),
    "a deadline is forgotten": (lambda s: s.deadlines.clear(), "deadlines are"),
    "a deadline is made up": (
        lambda s: s.deadlines.append(Deadline(99, 0, JobId("a"))),
        "deadlines are",
    ),
    "a waiting job has a lease": (change("a", state=JobState.QUEUED), "queued job a has the grant"),
    "a running job never started": (change("b", state=JobState.RUNNING), "b never started"),
    "a job stops without a decision": (change("a", state=JobState.STOPPING), "has the stop None"),
    "an ended job is live": (change("w", state=JobState.ENDED), "live job w has ended"),
    "a job is misfiled": (change("w", id=JobId("x")), "job x is filed under w"),
    "a job is live and ended": (
        lambda s: s.ended.update({JobId("w"): s.jobs[JobId("w")]}),
        "job w is both live and ended",
    ),
    "a suspended job runs": (change("a", state=JobState.SUSPENDED), "suspended job a runs"),
    "a suspended job is forgotten": (
        change("a", state=JobState.SUSPENDED),
        "suspended jobs are [], not ['a']",
    ),
    "a shrunk job is made up": (
        lambda s: s.shrunk.update({JobId("a"): None}),
        "shrunk jobs are ['a'], not []",
    ),
    "a job shrinks without a decision": (
        change("a", state=JobState.SHRINKING),
        "shrinking job a has no decision to shrink",
    ),
    "a gang is too small": (
        change("a", request=replace(busy_lab().job("a").request, gpus=2)),
        "asked for 2 GPUs",
    ),
    "a leased GPU is unknown": (lambda s: s.devices.pop(gpu(0)), "has unknown GPUs"),
    "a counter is behind": (lambda s: setattr(s, "next_job", 1), "number of 1 or more"),
    "decisions are counted twice": (lambda s: setattr(s, "next_decision", 1), "id of 1 or more"),
    "leases are counted twice": (lambda s: setattr(s, "next_lease", 1), "a lease has a number"),
    "a cancel is left": (lambda s: s.cancelling.update({JobId("a"): ""}), "not decided on"),
    "a GPU is available for a reason": (
        lambda s: s.devices.update({gpu(0): replace(s.devices[gpu(0)], reason="Xid 79")}),
        "is available and yet Xid 79",
    ),
    "jobs are out of order": (
        lambda s: s.jobs.update({JobId("a"): s.jobs.pop(JobId("a"))}),
        "not in the order of submission",
    ),
}


def test_a_sound_state_passes() -> None:
    check(busy_lab().state)


@pytest.mark.parametrize("case", BREAKS)
def test_a_broken_state_is_named(case: str) -> None:
    break_it, message = BREAKS[case]
    state = busy_lab().state
    break_it(state)
    with pytest.raises(BrokenInvariant) as broken:
        check(state)
    assert message in str(broken.value)


def test_a_gang_that_mixes_simulated_and_real_gpus_is_named() -> None:
    lab = Lab(gpus=2)
    lab.submit("a", gpus=2)
    lab.state.devices[gpu(1)] = replace(lab.state.devices[gpu(1)], simulated=True)
    with pytest.raises(BrokenInvariant, match="simulated and real"):
        check(lab.state)


def test_too_many_ended_jobs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = busy_lab()
    monkeypatch.setattr("workbench.core.invariants.ENDED_JOBS_KEPT", 0)
    with pytest.raises(BrokenInvariant, match="1 ended jobs are kept"):
        check(lab.state)


def test_the_status_of_a_lost_gpu_does_not_matter_to_its_lease() -> None:
    lab = busy_lab()
    lab.lose(0)
    assert lab.state.devices[DeviceId(gpu(0))].status is DeviceStatus.LOST
    check(lab.state)
