"""What owners are told: why a job starts, gives way and goes on, by whom, and what comes then."""

from __future__ import annotations

from workbench.core.decisions import Preempt, Resume, Shrink, Suspend
from workbench.core.job import Job, served_s
from workbench.core.model import Preemption, PriorityClass, Units
from workbench.core.moving import spell_level
from workbench.core.preemption import Contender
from workbench.core.rungs import GivingWay
from workbench.core.spelling import count, short_job, spell_seconds
from workbench.core.standings import OVERDUE
from workbench.core.state import State

IT_GOES_ON = "it gave way before, and its cores are free"
"""The reason of a job that goes on while others before it do not fit."""
ITS_TURN = "it is its turn"
"""Ends the reason of a grant that there is nothing to say of."""


def giving_way(
    state: State, one: GivingWay, winner: Job, number: int
) -> Preempt | Shrink | Suspend:
    """Makes the decision.

    Args:
        state: The state; it is not changed.
        one: Who gives way, and how.
        winner: Who gets the units.
        number: The decision's id.

    Returns:
        The decision for the step.
    """
    job = one.job
    assert job.grant is not None
    lease, reason = job.grant.lease, _reason(state, one, winner)
    if one.step is Preemption.SHRINK:
        return Shrink(
            id=number,
            at=state.at,
            lease=lease,
            job=job.id,
            gpus=one.units.gpus,
            winner=winner.id,
            reason=reason,
        )
    if one.step is Preemption.SUSPEND:
        return Suspend(
            id=number, at=state.at, lease=lease, job=job.id, winner=winner.id, reason=reason
        )
    return Preempt(
        id=number,
        at=state.at,
        lease=lease,
        job=job.id,
        step=one.step,
        winner=winner.id,
        reason=reason,
    )


def going_on(state: State, job: Job, number: int, reason: str, *, is_settled: bool) -> Resume:
    """Makes the decision that has a suspended job go on.

    Args:
        state: The state; it is not changed.
        job: A suspended job.
        number: The decision's id.
        reason: Why it is its turn.
        is_settled: Whether it waited past the bound.

    Returns:
        The decision, with the cores that it was granted.
    """
    assert job.grant is not None
    assert job.ladder is not None
    return Resume(
        id=number,
        at=state.at,
        lease=job.grant.lease,
        job=job.id,
        cores=job.ladder.granted.cores,
        reason=reason,
        is_settled=is_settled,
    )


def _reason(state: State, one: GivingWay, winner: Job) -> str:
    """Says to the victim's owner what happens; one sentence without its full stop."""
    if one.step is Preemption.SHRINK:
        needs = f"needs {count(len(one.units.gpus), 'GPU')} of its"
        then = "it gets them back when no waiting job can use them"
    elif one.step is Preemption.SUSPEND:
        needs, then = "needs its cores", _way_back(state, winner, "goes on")
    else:
        needs, then = "needs its units", _way_back(state, winner, "comes back")
    use = one.job.use
    if use is not None and use.lowered is not None:
        return f"{short_job(winner.id)} {needs}, and {use.lowered.reason}; {then}"
    if winner.request.priority is not one.job.request.priority:
        return f"{short_job(winner.id)} of class {winner.request.priority} {needs}; {then}"
    return f"{short_job(winner.id)} stands higher and {needs}; {then}"


def _way_back(state: State, winner: Job, comes_back: str) -> str:
    """Says when, where that is known: nobody else waits, and how long the winner takes is told."""
    expected_s = winner.request.expected_s
    if expected_s is not None and state.waiting_jobs == 1:
        left_s = expected_s - served_s(winner, state.at)
        if left_s > 0:
            return f"it {comes_back} after about {spell_seconds(left_s)}"
    return "it keeps its place by class, fair share and order"


def why_it_starts(contender: Contender, units: Units, *, is_passing: bool) -> str:
    """Says why a job gets units now.

    Args:
        contender: The job, and where it stands.
        units: What it gets.
        is_passing: Whether it passes one that does not fit.

    Returns:
        The reason of its grant.
    """
    if contender.level == OVERDUE:
        return "it waited longer than the lab's bound"
    turn = "it fits, and the jobs ahead of it do not yet" if is_passing else ITS_TURN
    said = f"{spell_level(contender.level)}: {turn}"
    if contender.level == 1 and contender.job.request.priority is PriorityClass.HIGH:
        said += "; its owner's budget of class high is used"
    gpus = contender.job.request.gpus
    if gpus and not units.gpus:
        said += f"; {count(units.cores, 'core')} in place of {count(gpus, 'GPU')}"
    return said
