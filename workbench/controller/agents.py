"""Live agent connections by uid, and what is pushed to them. A push is repeated until confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from workbench.controller.driver import Driver
from workbench.controller.log import LOG
from workbench.core.decisions import Decision, Grant, Preempt, Stop
from workbench.core.events import AgentLost
from workbench.core.model import Outcome, Preemption, Uid
from workbench.core.state import State
from workbench.protocol.messages import GrantPush, StopPush
from workbench.transport.connection import Connection

STEPS: Final[tuple[Preemption, ...]] = ()
"""The steps of preemption that agents can carry out: none yet, as they start a job only once."""
RESEND_S: Final = 5.0
"""How long an agent has to confirm before it is told again."""
_LOOK_S: Final = 1.0


class Agents:
    """Knows which connection is a user's agent.

    Args:
        driver: Returns the driver; it is made after this object, which it calls.
    """

    def __init__(self, driver: Callable[[], Driver]) -> None:
        self._driver = driver
        self._by_uid: dict[Uid, Connection[Any]] = {}
        self._sent: dict[int, tuple[Connection[Any], float]] = {}
        self._loop = asyncio.get_running_loop()
        self._resending: asyncio.TimerHandle | None = None

    def attach(self, owner: Uid, connection: Connection[Any]) -> None:
        """Push to `connection` what is for `owner`'s agent from now on."""
        self._by_uid[owner] = connection
        LOG.info("the agent of uid %d is connected, pid %d", owner, connection.peer.pid)

    def forget(self, connection: Connection[Any]) -> None:
        """Tell the core that the agent is gone, if this connection was one."""
        owner = Uid(connection.peer.uid)
        if self._by_uid.get(owner) is connection:
            del self._by_uid[owner]
            LOG.info("the agent of uid %d is gone", owner)
            self._driver().note(partial(AgentLost, owner=owner))

    def carry_out(self, decisions: Sequence[Decision]) -> None:
        """Push decisions to the agents that they are for, again later until confirmed."""
        state = self._driver().state
        for decision in decisions:
            self._push(state, decision)
        if decisions:
            self._resend_later()

    def resend(self) -> None:
        """Push what is unconfirmed and was not sent lately over the agent's present connection."""
        state = self._driver().state
        unconfirmed = self._driver().unconfirmed()
        self._sent = {d.id: self._sent[d.id] for d in unconfirmed if d.id in self._sent}
        lately_s = self._loop.time() - RESEND_S
        for decision in unconfirmed:
            over, at_s = self._sent.get(decision.id, (None, 0.0))
            present = self._by_uid.get(state.jobs[decision.job].owner)
            if over is not present or at_s <= lately_s:
                self._push(state, decision)
        if unconfirmed:
            self._resend_later()

    def stop_unknown(self, owner: Uid, *, lease: str, job: str) -> None:
        """Have an agent end a lease that is not in the journal."""
        reason = "the controller does not know this lease: its journal was lost"
        self._by_uid[owner].send(0, StopPush(lease=lease, job=job, reason=reason))

    def close(self) -> None:
        """Push nothing any more."""
        if self._resending is not None:
            self._resending.cancel()
        self._by_uid.clear()

    def _push(self, state: State, decision: Decision) -> None:
        if not isinstance(decision, Grant | Stop | Preempt):
            return  # Nothing of it is for an agent to do; the milder steps are none of `STEPS`.
        job = state.jobs.get(decision.job)
        connection = self._by_uid.get(job.owner) if job is not None else None
        if job is None or connection is None:
            return
        self._sent[decision.id] = (connection, self._loop.time())
        connection.send(
            0,
            _grant_push(state, decision) if isinstance(decision, Grant) else _stop_push(decision),
        )

    def _resend_later(self) -> None:
        if self._resending is None:
            self._resending = self._loop.call_later(_LOOK_S, self._on_timer)

    def _on_timer(self) -> None:
        self._resending = None
        self.resend()


def _stop_push(stop: Stop | Preempt) -> StopPush:
    is_late = isinstance(stop, Stop) and stop.outcome is Outcome.TIMED_OUT
    return StopPush(
        lease=stop.lease,
        job=stop.job,
        reason=stop.reason,
        outcome="timed out" if is_late else "cancelled",
    )


def _grant_push(state: State, grant: Grant) -> GrantPush:
    return GrantPush(
        lease=grant.lease,
        job=grant.job,
        gpus=list(grant.units.gpus),
        cores=grant.units.cores,
        simulated=any(state.devices[gpu].simulated for gpu in grant.units.gpus),
        gpu_memory_bytes=state.jobs[grant.job].request.gpu_memory_bytes,
    )
