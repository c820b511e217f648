"""The table is the specification: `apply` and it must agree on every entry and state."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from tests.core.builders import ALICE, Lab, copy_of, gpu, grant, same, submitted
from workbench.core.apply import apply
from workbench.core.calendar import Booking, BookingId
from workbench.core.decisions import (
    Decision,
    End,
    Grow,
    Lower,
    Preempt,
    Raise,
    Resume,
    Shrink,
    Stop,
    Suspend,
    Warn,
    WarnOverstay,
)
from workbench.core.errors import IllegalEvent
from workbench.core.events import (
    BookingMade,
    CancelRequested,
    Event,
    HoldRequested,
    HostRebooted,
    LeaseEnded,
    LeaseGrown,
    LeaseResumed,
    LeaseShrunk,
    LeaseStarted,
    LeaseSuspended,
    ProgressMade,
    ReleaseRequested,
    UseFell,
    UseRose,
)
from workbench.core.model import JobId, JobState, LeaseId, Outcome, Preemption, Units
from workbench.core.transitions import TRANSITIONS, next_state

STATES = [None, *JobState]
LEASE = LeaseId("L1")
ALL_GPUS = (gpu(0), gpu(1), gpu(2))
BOOKING = Booking(id=BookingId("b"), owner=ALICE, start_at=1e6, end_at=1e6 + 60, gpus=1)
REACHED = {
    JobState.SHRINKING: (Shrink,),
    JobState.SUSPENDING: (Suspend,),
    JobState.SUSPENDED: (Suspend, LeaseSuspended),
    JobState.RESUMING: (Suspend, LeaseSuspended, Resume),
    JobState.PREEMPTING: (Preempt,),
    JobState.STOPPING: (Stop,),
    JobState.ENDED: (LeaseEnded,),
}
"""How a running job comes to a state."""


def lab_with_a_job_in(state: JobState | None) -> Lab:
    """The other job's lease is L0, so that this one's is L1 as soon as it has one.

    Once it runs, it has given one of its three GPUs back, so that it may shrink and grow.
    """
    lab = Lab(cores=2 if state is JobState.QUEUED else 4, gpus=3)
    lab.send(BookingMade(at=0, booking=BOOKING))
    lab.submit("other", cores=2)
    if state is None:
        return lab
    lab.submit("job", cores=2, **ELASTIC)
    if state is JobState.RUNNING or state in REACHED:
        lab.start("job")
        shrink = entry_about_the_job(Shrink, lab)
        apply(lab.state, replace(shrink, gpus=(gpu(2),)))
        apply(lab.state, LeaseShrunk(at=lab.state.at, lease=LEASE, gpus=(gpu(2),)))
        for kind in REACHED.get(state, ()):
            apply(lab.state, entry_about_the_job(kind, lab))
    assert lab.job("job").state is state
    return lab


ELASTIC: dict[str, Any] = {"gpus": 3, "min_gpus": 1, "preemption": tuple(Preemption)}


def entry_about_the_job(kind: type[Event | Decision], lab: Lab) -> Any:
    id_, at = lab.state.next_decision, lab.state.at
    about: dict[str, Any] = {"id": id_, "at": at, "lease": LEASE, "job": JobId("job"), "reason": ""}
    winner: dict[str, Any] = {"winner": JobId("other")}
    units = Units(gpus=ALL_GPUS, cores=2)
    entries: dict[type[Event | Decision], Event | Decision] = {
        type(entry): entry
        for entry in (
            submitted(at, "job", cores=2, **ELASTIC),
            CancelRequested(at=at, job=JobId("job"), reason="enough"),
            grant(id_, at, lab.state.next_lease, "job", units),
            LeaseStarted(at=at, lease=LEASE),
            Stop(**about, outcome=Outcome.CANCELLED),
            Preempt(**about, **winner, step=Preemption.REQUEUE),
            Shrink(**about, **winner, gpus=(gpu(1),)),
            LeaseShrunk(at=at, lease=LEASE, gpus=(gpu(1),)),
            Grow(**about, gpus=(gpu(2),)),
            LeaseGrown(at=at, lease=LEASE),
            Suspend(**about, **winner),
            LeaseSuspended(at=at, lease=LEASE),
            Resume(**about, cores=2),
            LeaseResumed(at=at, lease=LEASE),
            HoldRequested(at=at, job=JobId("job")),
            ReleaseRequested(at=at, job=JobId("job")),
            LeaseEnded(at=at, lease=LEASE, outcome=Outcome.KILLED, detail=""),
            WarnOverstay(**about, booking=BOOKING.id, at_latest=1e6),
            End(id=id_, at=at, job=JobId("job"), outcome=Outcome.CANCELLED, reason=""),
            UseFell(at=at, lease=LEASE, part=0.0),
            UseRose(at=at, lease=LEASE, part=1.0),
            ProgressMade(at=at, lease=LEASE, part=0.5),
            Warn(id=id_, at=at, lease=LEASE, job=JobId("job"), reason="", until=at),
            Lower(id=id_, at=at, lease=LEASE, job=JobId("job"), reason=""),
            Raise(id=id_, at=at, lease=LEASE, job=JobId("job"), reason=""),
            HostRebooted(at=at),
        )
    }
    return entries[kind]


def make_due(kind: type[Event | Decision], lab: Lab) -> None:
    """Folds what has to come before a warning, or before what follows it."""
    at, lease, job = lab.state.at, LeaseId("L1"), JobId("job")
    if kind in {Warn, Lower, Raise}:
        apply(lab.state, UseFell(at=at, lease=lease, part=0.0))
    if kind in {Lower, Raise}:
        id_ = lab.state.next_decision
        apply(lab.state, Warn(id=id_, at=at, lease=lease, job=job, reason="", until=at))
    if kind is Raise:
        id_ = lab.state.next_decision
        apply(lab.state, Lower(id=id_, at=at, lease=lease, job=job, reason=""))
        apply(lab.state, UseRose(at=at, lease=lease, part=1.0))


def test_the_table_lists_every_entry_that_is_about_jobs() -> None:
    about_jobs = {
        kind
        for kind in (*get_args(Event), *get_args(Decision))
        if {"job", "lease"} & set(kind.__dataclass_fields__)
    }
    assert set(TRANSITIONS) == about_jobs | {HostRebooted}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", TRANSITIONS)
def test_apply_obeys_the_table(kind: type[Event | Decision], state: JobState | None) -> None:
    lab = lab_with_a_job_in(state)
    if kind.__name__ == "Grant" and state is JobState.QUEUED:
        lab.entries.append(LeaseEnded(at=0, lease=LeaseId("L0"), outcome=Outcome.DONE, detail=""))
        apply(lab.state, lab.entries[-1])
    if state is JobState.RUNNING:
        make_due(kind, lab)
    entry = entry_about_the_job(kind, lab)
    following = TRANSITIONS[kind].get(state)
    before = copy_of(lab.state)
    if following is None and not (kind is HostRebooted and state is None):
        with pytest.raises(IllegalEvent):
            apply(lab.state, entry)
        assert same(lab.state, before)
        return
    apply(lab.state, entry)
    assert kind is HostRebooted or lab.job("job").state is following


def test_an_ended_job_never_lives_again() -> None:
    for rows in TRANSITIONS.values():
        assert rows.get(JobState.ENDED, JobState.ENDED) is JobState.ENDED


def test_every_state_is_reached_and_left() -> None:
    moves = {(a, b) for rows in TRANSITIONS.values() for a, b in rows.items() if a is not b}
    assert {b for _, b in moves} == set(JobState)
    assert {a for a, _ in moves} == {None, *JobState} - {JobState.ENDED}


def test_an_illegal_row_names_the_entry_and_the_state() -> None:
    with pytest.raises(IllegalEvent, match="LeaseStarted is illegal while its job is queued"):
        next_state(LeaseStarted(at=0, lease=LeaseId("L0")), JobState.QUEUED)
