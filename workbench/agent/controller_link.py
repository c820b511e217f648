"""The controller as the agent sees it: one connection, made again for as long as we live."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable
from typing import Final, Protocol

from workbench.core.errors import PeerError, UserError, WorkbenchError
from workbench.protocol.messages import (
    Attach,
    Cancel,
    ControllerReply,
    GetStatus,
    GrantPush,
    HeldLease,
    LeaseConfirmed,
    LeaseEnding,
    LeaseOver,
    Message,
    Status,
    StopPush,
)
from workbench.transport.channel import Channel
from workbench.transport.connection import Connection, connect
from workbench.transport.errors import ConnectionLost, NobodyListens
from workbench.transport.paths import ControllerPlace, controller_place
from workbench.transport.start import ensure_running

LOG: Final = logging.getLogger(__name__)
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 5.0
START_TIMEOUT_S: Final = 15.0


class Orders(Protocol):
    """Who carries out what the controller decides: `Runner`."""

    def grant(self, grant: GrantPush) -> None:
        """Start a job."""

    def stop(self, stop: StopPush) -> None:
        """End a lease's tree."""


class ControllerLink:
    """Keeps attached to the controller, takes its orders and reports until it has understood.

    Args:
        held: Returns the leases to attach with.
        is_needed: Whether an embedded controller that is gone has to be started again.
        on_reported: Called with each lease whose end the controller knows for good.
    """

    def __init__(
        self,
        held: Callable[[], list[HeldLease]],
        is_needed: Callable[[], bool],
        on_reported: Callable[[str], None],
    ) -> None:
        self._held = held
        self._is_needed = is_needed
        self._on_reported = on_reported
        self._channel: Channel | None = None
        self._over: dict[str, LeaseEnding] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._attached = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self, orders: Orders) -> None:
        """Stay connected, for ever."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                await self._serve(orders)
                pause_s = FIRST_PAUSE_S
            except WorkbenchError as error:
                LOG.info("no controller: %s", error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), pause_s)
            self._hurry.clear()
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def attached(self, timeout_s: float) -> bool:
        """Try again now if need be, and return whether the controller knows this agent."""
        self._hurry.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._attached.wait(), timeout_s)
        return self._attached.is_set()

    def confirm(self, lease: str) -> None:
        """Say that a lease's job runs. Attaching says it again by itself."""
        self._tell(LeaseConfirmed(lease=lease))

    def over(self, lease: str, ending: LeaseEnding) -> None:
        """Say that nobody is left in a lease's tree, until the controller has understood."""
        self._over[lease] = ending
        self._tell(LeaseOver(lease=lease, ending=ending))

    async def cancel(self, job: str, reason: str) -> None:
        """End a job, as its owner.

        Raises:
            PeerError: The controller cannot be reached now.
            UserError: It does not know the job.
        """
        await self._ask(Cancel(job=job, reason=reason))

    async def live_jobs(self) -> set[str]:
        """Return the ids of the jobs that the controller has queued or running.

        Raises:
            PeerError: The controller cannot be reached now.
        """
        status = await self._ask(GetStatus())
        if not isinstance(status, Status):
            raise PeerError(f"the controller answered GetStatus with {type(status).__name__}")
        return {view.id for view in status.jobs}

    async def _serve(self, orders: Orders) -> None:
        """Attach and take orders until the connection is lost.

        Raises:
            WorkbenchError: It could not be made.
        """
        channel = Channel(
            await self._open(),
            on_push=lambda push: _obey(orders, push),
            on_lost=lambda error: LOG.info("the controller is gone: %s", error),
        )
        try:
            await channel.greet()
            self._channel = channel
            self._tell(Attach(leases=self._held()))
            for lease, ending in self._over.items():
                self._tell(LeaseOver(lease=lease, ending=ending))
            await channel.until_lost()
        finally:
            self._channel = None
            self._attached.clear()
            await channel.close()

    async def _open(self) -> Connection[ControllerReply]:
        place = controller_place()
        try:
            return await self._connect(place)
        except NobodyListens:
            if place.lab or not self._is_needed():
                raise
        argv = [sys.executable, "-m", "workbench.controller", "--embedded"]
        lock = place.socket.with_suffix(".start")
        await asyncio.to_thread(ensure_running, place.socket, lock, argv, timeout_s=START_TIMEOUT_S)
        return await self._connect(place)

    async def _connect(self, place: ControllerPlace) -> Connection[ControllerReply]:
        return await connect(place.socket, ControllerReply, trusted_uids=place.trusted_uids)

    def _tell(self, message: Message) -> None:
        if self._channel is not None:
            telling = asyncio.create_task(self._tell_and_note(message))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    async def _tell_and_note(self, message: Message) -> None:
        try:
            await self._ask(message)
        except ConnectionLost:
            return  # Said again when we attach the next time.
        except WorkbenchError as error:
            LOG.warning("%s was refused: %s", type(message).__name__, error.message)
            if not isinstance(error, UserError):
                return
        if isinstance(message, Attach):
            self._attached.set()
        if isinstance(message, LeaseOver):
            self._over.pop(message.lease, None)
            self._on_reported(message.lease)

    async def _ask(self, message: Message) -> Message:
        if self._channel is None:
            raise ConnectionLost("the controller is not connected")
        return await self._channel.ask(message)


def _obey(orders: Orders, push: Message) -> None:
    if isinstance(push, GrantPush):
        orders.grant(push)
    elif isinstance(push, StopPush):
        orders.stop(push)
