"""What `apply` refuses; what it accepts is seen through the scheduler."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.core.builders import ALICE, GIB, Lab, copy_of, gpu, grant, same, seen, submitted
from workbench.core.apply import apply
from workbench.core.decisions import Decision, Stop
from workbench.core.errors import IllegalEvent
from workbench.core.events import (
    CancelRequested,
    DeviceBusyOutside,
    DeviceLost,
    DispatchHeld,
    DrainStarted,
    Event,
    HostSeen,
)
from workbench.core.model import JobId, LeaseId, Outcome, Units


def busy_lab() -> Lab:
    """A job with the lease L0 on the first of three GPUs; the next one waits for five cores."""
    lab = Lab(gpus=3, cores=6, memory_gib=8)
    lab.send(seen(0, 9, simulated=True))
    lab.send(seen(0, 6))
    lab.send(seen(0, 7, mig="1g.10gb", parent=gpu(6)))
    lab.submit("a", gpus=1, cores=2, memory_bytes=4 * GIB)
    lab.submit("w", gpus=1, cores=5)
    return lab


GOOD = grant(1, 0, 1, "w", Units(gpus=(gpu(1),), cores=3))
STOP = Stop(
    id=1, at=0, lease=LeaseId("L0"), job=JobId("a"), outcome=Outcome.CANCELLED, reason="enough"
)
REFUSALS: dict[str, tuple[Event | Decision, str]] = {
    "a host without cores": (HostSeen(at=0, cores=0, memory_bytes=1), "has cores and memory"),
    "a GPU that turns real": (seen(0, 9), "simulated for ever or never"),
    "a loss of an unknown GPU": (
        DeviceLost(at=0, device=gpu(8), missing=False, reason="Xid 79"),
        "was never seen",
    ),
    "use of an unknown GPU": (
        DeviceBusyOutside(at=0, device=gpu(8), reason="uid 1009"),
        "was never seen",
    ),
    "a cancel of an unknown job": (
        CancelRequested(at=0, job=JobId("zz"), reason=""),
        "a job that is not known",
    ),
    "another job under a known id": (submitted(0, "a", ALICE), "belongs to another job"),
    "a decision out of turn": (replace(GOOD, id=2), "the next decision is 1"),
    "a decision of another time": (replace(GOOD, at=1), "the next decision is 1 at 0"),
    "a lease out of turn": (replace(GOOD, lease=LeaseId("L5")), "the next lease is L1"),
    "a grant to no job": (replace(GOOD, job=JobId("zz")), "no such job is live"),
    "a second grant": (replace(GOOD, job=JobId("a")), "while its job is starting"),
    "a leased GPU": (replace(GOOD, units=Units(gpus=(gpu(0),))), "is leased, unknown or not"),
    "an unknown GPU": (replace(GOOD, units=Units(gpus=(gpu(8),))), "is leased, unknown or not"),
    "too many GPUs": (replace(GOOD, units=Units(gpus=(gpu(1), gpu(2)))), "asked for 1 GPU"),
    "too many cores": (replace(GOOD, units=Units(gpus=(gpu(1),), cores=5)), "that many cores"),
    "too much memory": (
        replace(GOOD, units=Units(gpus=(gpu(1),), memory_bytes=5 * GIB)),
        "that much memory",
    ),
    "a share that nobody asked for": (
        replace(GOOD, units=Units(gpus=(gpu(1),), share_bytes=GIB)),
        "asked for 0 bytes of a GPU",
    ),
    "a slice in place of a GPU": (
        replace(GOOD, units=Units(gpus=(gpu(7),))),
        "asked for whole GPUs",
    ),
    "a GPU that is split": (replace(GOOD, units=Units(gpus=(gpu(6),))), "is leased, unknown or"),
    "a slice that becomes a GPU": (seen(0, 7), "the same slice of one GPU"),
    "a slice without a profile": (seen(0, 8, parent=gpu(6)), "a slice has a profile"),
    "a stop of another's lease": (replace(STOP, lease=LeaseId("L7")), "does not hold this lease"),
    "a stop of a waiting job": (replace(STOP, job=JobId("w")), "while its job is queued"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_follow_is_refused_and_the_state_stays_as_it_was(case: str) -> None:
    entry, message = REFUSALS[case]
    state = busy_lab().state
    before = copy_of(state)
    with pytest.raises(IllegalEvent, match=message):
        apply(state, entry)
    assert same(state, before)


def test_the_grant_that_the_refused_ones_are_made_from_is_legal() -> None:
    state = busy_lab().state
    apply(state, GOOD)
    assert state.holders[gpu(1)] == "L1"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda lab: lab.lose(1), "not available"),
        (lambda lab: lab.send(DispatchHeld(at=0, reason="mismatch")), "not available"),
        (lambda lab: lab.disconnect(ALICE), "agent is not connected"),
        (lambda lab: lab.send(DrainStarted(at=0, node="", reason="power")), "not available"),
    ],
)
def test_a_grant_is_refused_where_the_lab_does_not_allow_it(
    spoil: Callable[[Lab], object], message: str
) -> None:
    lab = busy_lab()
    spoil(lab)
    with pytest.raises(IllegalEvent, match=message):
        apply(lab.state, GOOD)


def sharing_lab() -> Lab:
    """A share of GPU 0, and one that waits for cores."""
    lab = Lab(gpus=2, cores=4)
    lab.submit("a", gpus=1, share_bytes=70 * GIB, cores=2)
    lab.submit("w", gpus=1, share_bytes=7 * GIB, cores=3)
    lab.submit("x", gpus=1, cores=2)
    return lab


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (grant(2, 0, 2, "w", Units(gpus=(gpu(0),), share_bytes=7 * GIB)), "memory left for shares"),
        (grant(2, 0, 2, "w", Units(gpus=(gpu(1),), share_bytes=7 * GIB)), "is leased, unknown"),
        (grant(2, 0, 2, "w", Units(gpus=(gpu(1),), share_bytes=GIB)), "asked for 7516192768 bytes"),
        (grant(2, 0, 2, "w", Units(gpus=(gpu(1),))), "asked for 7516192768 bytes"),
    ],
)
def test_a_share_is_refused_where_there_is_no_room(entry: Decision, message: str) -> None:
    lab = sharing_lab()
    before = copy_of(lab.state)
    with pytest.raises(IllegalEvent, match=message):
        apply(lab.state, entry)
    assert same(lab.state, before)


def test_a_gang_of_two_models_is_refused() -> None:
    lab = Lab(cores=4)
    for number, model in enumerate(["A100", "A100", "RTX 3090"]):
        lab.send(seen(0, number, model=model))
    lab.submit("a", cores=4)
    lab.submit("w", gpus=2, models=("rtx", "a100"))
    lab.state.leased_cores = 0
    with pytest.raises(IllegalEvent, match="asked for one of"):
        apply(lab.state, grant(1, 0, 1, "w", Units(gpus=(gpu(1), gpu(2)))))
    apply(lab.state, grant(1, 0, 1, "w", Units(gpus=(gpu(0), gpu(1)))))


def test_a_whole_gpu_is_refused_where_it_is_shared() -> None:
    lab = sharing_lab()
    lab.end("x")
    lab.cancel("w")
    lab.submit("y", gpus=1, cores=3)
    with pytest.raises(IllegalEvent, match="is leased, unknown or not available"):
        apply(lab.state, grant(3, 0, 2, "y", Units(gpus=(gpu(0),))))


def test_on_a_drained_host_a_job_without_gpus_is_refused_too() -> None:
    lab = Lab()
    lab.send(DrainStarted(at=0, node="", reason="power"))
    lab.submit("a")
    with pytest.raises(IllegalEvent, match="the host is drained"):
        apply(lab.state, grant(0, 0, 0, "a", Units(cores=1)))


def test_a_gang_of_simulated_and_real_gpus_is_refused() -> None:
    lab = Lab(gpus=3)
    lab.lose(1)
    lab.submit("w", gpus=3)
    lab.send(seen(0, 9, simulated=True))
    mixed = grant(0, 0, 0, "w", Units(gpus=(gpu(0), gpu(2), gpu(9))))
    with pytest.raises(IllegalEvent, match="never mixed"):
        apply(lab.state, mixed)
