"""What controller and agent each know of the agent's leases, settled when it connects.

the core thinks   the agent says    then
STARTING          nothing           the grant is sent again
STARTING          ready             it is a kernel's, and nobody has started that yet
STARTING          alive             the lease has started
RUNNING           nothing           the lease is lost
STOPPING          nothing           the lease is over: there is no tree to stop
STOPPING          alive             the stop is sent again
any               ended             the lease is over
unknown           alive             the agent is told to end it: the journal was lost
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from workbench.controller.lab import Lab
from workbench.controller.log import LOG
from workbench.core.events import LeaseStarted
from workbench.core.model import JobState, LeaseId, Outcome, Uid
from workbench.protocol.messages import HeldLease


def reconcile(lab: Lab, owner: Uid, told: Sequence[HeldLease]) -> None:
    """Settle every lease of `owner` that one side knows and the other does not.

    Args:
        lab: Where the agent has connected.
        owner: The agent's uid.
        told: What the agent says it knows. What is sent again is left to `Agents.resend`.
    """
    state = lab.driver.state
    held = {lease: state.jobs[job] for lease, job in state.leases.items()}
    ours = {lease: job for lease, job in held.items() if job.owner == owner}
    known = {(lease.lease, lease.job): lease for lease in told}
    for lease, job in ours.items():
        report = known.get((lease, job.id))
        if report is None:
            _on_unknown_there(lab, lease, job.state)
        elif report.ended is not None:
            lab.releases.release(lease, Outcome(report.ended.outcome), report.ended.detail)
        elif job.state is JobState.STARTING and not report.ready:
            lab.driver.note(partial(LeaseStarted, lease=lease))
    for report in told:
        job_here = ours.get(LeaseId(report.lease))
        if report.ended is None and (job_here is None or job_here.id != report.job):
            LOG.warning("uid %d runs lease %s, which is not known here", owner, report.lease)
            lab.agents.stop_unknown(owner, lease=report.lease, job=report.job)


def _on_unknown_there(lab: Lab, lease: LeaseId, state: JobState) -> None:
    if state is not JobState.STARTING:
        lab.releases.release(lease, Outcome.LOST, "its agent does not know it any more")
