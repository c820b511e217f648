"""What the handlers act on: the parts of the running controller, and who asks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from workbench.controller.agents import Agents
from workbench.controller.clock import LabClock
from workbench.controller.driver import Driver
from workbench.controller.errors import NotYours, Unknown
from workbench.controller.log import LOG
from workbench.controller.publisher import Publisher
from workbench.controller.releases import Releases
from workbench.core.job import Job
from workbench.core.model import JobId, LeaseId, Uid
from workbench.core.settings import Settings
from workbench.protocol.messages import ControllerView
from workbench.transport.connection import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """The parts of the running controller."""

    driver: Driver
    agents: Agents
    releases: Releases
    publisher: Publisher
    clock: LabClock
    view: ControllerView
    started_unix_s: float
    settings: Settings


def uid_of(connection: Connection[Any]) -> Uid:
    """Return who asks: always the socket's peer, as the kernel reports it."""
    return Uid(connection.peer.uid)


def is_admin(uid: Uid) -> bool:
    """Whether `uid` may act on everybody's jobs: root, or who runs this controller."""
    return uid in {0, os.getuid()}


def own_job(lab: Lab, uid: Uid, identity: str) -> Job:
    """Return a job that `uid` may act on.

    Raises:
        Unknown: There is no such job.
        NotYours: It is another user's; logged.
    """
    job = lab.driver.state.find(JobId(identity))
    if job is None:
        raise Unknown(f"there is no job {identity}", next_step="`workbench jobs` lists them")
    if job.owner != uid and not is_admin(uid):
        LOG.warning("refused: uid %d asked to act on job %s of uid %d", uid, job.id, job.owner)
        raise NotYours(
            f"job {identity} belongs to another user; you act on your own jobs only",
            next_step="`workbench jobs` shows which are yours",
        )
    return job


def own_lease(lab: Lab, uid: Uid, identity: str) -> Job | None:
    """Return the live job that holds a lease; None where that lease is over already.

    Raises:
        NotYours: The lease is another user's: an agent speaks for its own uid alone; logged.
    """
    state = lab.driver.state
    holder = state.leases.get(LeaseId(identity))
    if holder is None:
        return None
    job = state.jobs[holder]
    if job.owner != uid:
        LOG.warning("refused: uid %d spoke of lease %s of uid %d", uid, identity, job.owner)
        raise NotYours(f"lease {identity} belongs to another user")
    return job
