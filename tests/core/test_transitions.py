"""The table is the specification: `apply` and it must agree on every entry and state."""

from typing import get_args

import pytest

from tests.core.builders import Lab, copy_of, grant, same, submitted
from workbench.core.apply import apply
from workbench.core.decisions import Decision, End, Preempt, Stop
from workbench.core.errors import IllegalEvent
from workbench.core.events import (
    CancelRequested,
    Event,
    HoldRequested,
    HostRebooted,
    LeaseEnded,
    LeaseStarted,
    ReleaseRequested,
)
from workbench.core.model import JobId, JobState, LeaseId, Outcome, Preemption, Units
from workbench.core.transitions import TRANSITIONS, next_state

STATES = [None, *JobState]


def lab_with_a_job_in(state: JobState | None) -> Lab:
    """The other job's lease is L0, so that this one's is L1 as soon as it has one."""
    lab = Lab(cores=2 if state is JobState.QUEUED else 4)
    lab.submit("other", cores=2)
    if state is None:
        return lab
    lab.submit("job", cores=2, preemption=(Preemption.REQUEUE,))
    if state in {JobState.RUNNING, JobState.PREEMPTING, JobState.STOPPING, JobState.ENDED}:
        lab.start("job")
    if state is JobState.PREEMPTING:
        lab.tick(100.0)
        lab.submit("urgent", cores=2, priority="high")
    if state is JobState.STOPPING:
        lab.cancel("job")
    if state is JobState.ENDED:
        lab.end("job")
    assert lab.job("job").state is state
    return lab


def entry_about_the_job(kind: type[Event | Decision], lab: Lab) -> Event | Decision:
    id_, lease, at = lab.state.next_decision, LeaseId("L1"), lab.state.at
    entries: dict[type[Event | Decision], Event | Decision] = {
        type(entry): entry
        for entry in (
            submitted(at, "job", cores=2, preemption=(Preemption.REQUEUE,)),
            CancelRequested(at=at, job=JobId("job"), reason="enough"),
            grant(id_, at, lab.state.next_lease, "job", Units(cores=2)),
            LeaseStarted(at=at, lease=lease),
            Stop(
                id=id_,
                at=at,
                lease=lease,
                job=JobId("job"),
                outcome=Outcome.CANCELLED,
                reason="",
            ),
            Preempt(
                id=id_,
                at=at,
                lease=lease,
                job=JobId("job"),
                step=Preemption.REQUEUE,
                winner=JobId("other"),
                reason="",
            ),
            HoldRequested(at=at, job=JobId("job")),
            ReleaseRequested(at=at, job=JobId("job")),
            LeaseEnded(at=at, lease=lease, outcome=Outcome.KILLED, detail=""),
            End(id=id_, at=at, job=JobId("job"), outcome=Outcome.CANCELLED, reason=""),
            HostRebooted(at=at),
        )
    }
    return entries[kind]


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
