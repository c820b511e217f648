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
    Event,
    HostSeen,
)
from workbench.core.model import JobId, LeaseId, Outcome, Units


def busy_lab() -> Lab:
    """A job with the lease L0 on the first of three GPUs; the next one waits for five cores."""
    lab = Lab(gpus=3, cores=6, memory_gib=8)
    lab.send(seen(0, 9, simulated=True))
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
    ],
)
def test_a_grant_is_refused_where_the_lab_does_not_allow_it(
    spoil: Callable[[Lab], object], message: str
) -> None:
    lab = busy_lab()
    spoil(lab)
    with pytest.raises(IllegalEvent, match=message):
        apply(lab.state, GOOD)


def test_a_gang_of_simulated_and_real_gpus_is_refused() -> None:
    lab = Lab(gpus=3)
    lab.lose(1)
    lab.submit("w", gpus=3)
    lab.send(seen(0, 9, simulated=True))
    mixed = grant(0, 0, 0, "w", Units(gpus=(gpu(0), gpu(2), gpu(9))))
    with pytest.raises(IllegalEvent, match="never mixed"):
        apply(lab.state, mixed)
