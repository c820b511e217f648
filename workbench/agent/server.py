"""The socket's side for clients: greet, carry out each request, answer."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from typing import Any, Final

import msgspec

from workbench import __version__
from workbench.agent.controller_link import ControllerLink
from workbench.agent.errors import NotComplete, ProtocolMismatch
from workbench.agent.followers import Followers
from workbench.agent.jobs import Job, Jobs
from workbench.agent.kernels import Kernels
from workbench.agent.runner import Runner
from workbench.agent.sessions import Session, Sessions
from workbench.core.errors import BugError, WorkbenchError
from workbench.protocol.failures import failure_of
from workbench.protocol.messages import (
    PROTOCOL,
    Discard,
    Done,
    Follow,
    GiveBack,
    Hello,
    Interrupt,
    KernelStarted,
    Message,
    OpenSession,
    Stage,
    StageKernel,
    TakeKernel,
    Warm,
    Welcome,
)
from workbench.protocol.text import restored
from workbench.transport.connection import Connection
from workbench.transport.errors import BrokenProtocol, ConnectionLost

LOG: Final = logging.getLogger(__name__)
ATTACH_TIMEOUT_S: Final = 5.0
_SESSION_ID: Final = re.compile(r"[0-9a-f]{32}")


class Server:
    """Serves this user's clients, and nobody else.

    Args:
        jobs: What is staged and runs.
        sessions: The kernel sessions.
        runner: Interrupts jobs.
        followers: Who follows what.
        kernels: Looks after kernels' leases.
    """

    def __init__(
        self,
        jobs: Jobs,
        sessions: Sessions,
        runner: Runner,
        followers: Followers,
        kernels: Kernels,
        controller: ControllerLink,
    ) -> None:
        self._jobs = jobs
        self._sessions = sessions
        self._runner = runner
        self._followers = followers
        self._kernels = kernels
        self._controller = controller
        self._started_unix_s = time.time()
        self._warming: set[asyncio.Task[None]] = set()

    async def on_connection(self, connection: Connection[Any]) -> None:
        """Serve one connection to its end.

        Raises:
            ConnectionLost: The peer went away or broke the protocol.
        """
        if connection.peer.uid != os.getuid():
            raise ConnectionLost(f"uid {connection.peer.uid} may not use this user's agent")
        opened: list[Session] = []
        answering: set[asyncio.Task[None]] = set()
        try:
            await self._greet(connection)
            while True:
                identity, message = await connection.receive()
                if isinstance(message, Hello):
                    raise BrokenProtocol("Hello came out of place")
                answer = self._answer(connection, identity, message, opened)
                task = asyncio.create_task(answer)
                answering.add(task)
                task.add_done_callback(answering.discard)
        finally:
            for task in answering:
                task.cancel()
            self._followers.remove(connection)
            for session in opened:
                session.connections -= 1
                session.gone_since = time.monotonic()

    async def _greet(self, connection: Connection[Any]) -> None:
        identity, hello = await connection.receive()
        if not isinstance(hello, Hello) or hello.protocol != PROTOCOL:
            theirs = hello.protocol if isinstance(hello, Hello) else "an unknown one"
            error = ProtocolMismatch(
                f"this user's agent (gpu-workbench {__version__}) speaks protocol {PROTOCOL}, you "
                f"speak {theirs}",
                next_step="Run `pip install -U gpu-workbench` in both environments, then "
                "`workbench down`",
            )
            connection.send(identity, failure_of(error))
            raise ConnectionLost(str(error))
        welcome = Welcome(
            protocol=PROTOCOL,
            software=__version__,
            pid=os.getpid(),
            mode="agent",
            started_unix_s=self._started_unix_s,
        )
        connection.send(identity, welcome)

    async def _answer(
        self,
        connection: Connection[Any],
        identity: int,
        message: Message,
        opened: list[Session],
    ) -> None:
        followed: Job | None = None
        answer: Message = Done()
        try:
            if isinstance(message, Follow):
                followed = self._jobs.get(message.job)
            else:
                answer = await self._carry_out(message, opened)
        except WorkbenchError as error:
            answer = failure_of(error)
        except Exception as error:
            LOG.exception("a bug in answering %s", type(message).__name__)
            answer = failure_of(BugError(f"the agent met a bug of its own: {error!r}"))
        connection.send(identity, answer)
        if followed is not None:  # The answer comes before the first push.
            self._followers.add(connection, followed)

    async def _carry_out(self, message: Message, opened: list[Session]) -> Message:
        match message:
            case OpenSession():
                self._open(message, opened)
            case Warm():
                await self._warm(message)
            case Stage():
                opening = self._sessions.get(message.session).opening
                self._jobs.stage(message.job, opening, detach=message.detach)
            case Discard():
                self._jobs.discard(message.job)
            case Interrupt():
                self._runner.interrupt(self._jobs.get(message.job))
            case StageKernel():
                self._kernels.stage(message)
            case TakeKernel():
                return self._kernels.take(message)
            case KernelStarted():
                self._kernels.started(message)
            case GiveBack():
                self._kernels.give_back(message)
        return Done()

    def _open(self, message: OpenSession, opened: list[Session]) -> None:
        if not _SESSION_ID.fullmatch(message.session):
            raise NotComplete(f"{message.session!r} is no session id: 32 hexadecimal digits")
        session = self._sessions.know(_restored(message))
        session.connections += 1
        opened.append(session)
        # The zygote gets warm while the user types; where it cannot, the first job says why.
        warming = asyncio.create_task(_warm_quietly(session, message.modules))
        self._warming.add(warming)
        warming.add_done_callback(self._warming.discard)

    async def _warm(self, message: Warm) -> None:
        session = self._sessions.get(message.session)
        # Whoever warms submits next; a controller that does not know this agent would not grant.
        await asyncio.gather(
            session.warm(message.modules), self._controller.attached(ATTACH_TIMEOUT_S)
        )


def _restored(message: OpenSession) -> OpenSession:
    return msgspec.structs.replace(
        message,
        python=restored(message.python),
        env={restored(name): restored(value) for name, value in message.env.items()},
        cwd=restored(message.cwd),
        sys_path=[restored(place) for place in message.sys_path],
    )


async def _warm_quietly(session: Session, modules: list[str]) -> None:
    try:
        await session.warm(modules)
    except WorkbenchError as error:
        LOG.warning("no zygote for session %s: %s", session.opening.session[:8], error)
