"""The agent as a client sees it: sessions, staging, following a job."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from typing import Self

from workbench.client.stopped import Stopped, is_stopped
from workbench.core.errors import BugError
from workbench.protocol.messages import (
    Advanced,
    AgentReply,
    Discard,
    Done,
    Follow,
    GiveBack,
    Interrupt,
    JobOver,
    KernelStarted,
    LeaseTaken,
    Message,
    OpenSession,
    Stage,
    StageKernel,
    TakeKernel,
    Warm,
)
from workbench.transport.channel import Channel
from workbench.transport.connection import Connection, connect
from workbench.transport.errors import ConnectionLost, NobodyListens
from workbench.transport.paths import agent_socket
from workbench.transport.start import ensure_running

START_TIMEOUT_S = 15.0


class AgentClient:
    """One connection to this user's agent. Make it with `connect`."""

    def __init__(self, connection: Connection[AgentReply]) -> None:
        self._followers: dict[str, asyncio.Queue[Advanced | JobOver | ConnectionLost]] = {}
        self._channel = Channel(connection, on_push=self._on_push, on_lost=self._on_lost)

    @classmethod
    async def connect(cls, *, start: bool = True) -> Self:
        """Connect to the agent, starting launcher and agent where they do not run.

        Raises:
            NobodyListens: It does not run and `start` is False.
            Stopped: The user has stopped it and asked for nothing since.
            PeerError: It does not come up, or speaks another protocol.
        """
        socket = agent_socket()
        try:
            connection = await connect(socket, AgentReply, trusted_uids=(os.getuid(),))
        except NobodyListens as error:
            if not start:
                raise
            if is_stopped():
                raise Stopped("agent") from error
            argv = [sys.executable, "-m", "workbench.agent.launcher"]
            await asyncio.to_thread(
                ensure_running,
                socket,
                socket.with_suffix(".start"),
                argv,
                timeout_s=START_TIMEOUT_S,
                in_own_scope=True,
            )
            connection = await connect(socket, AgentReply, trusted_uids=(os.getuid(),))
        client = cls(connection)
        try:
            await client._channel.greet()
        except BaseException:
            await client.close()
            raise
        return client

    @property
    def is_lost(self) -> bool:
        """Whether the agent is gone; connect again."""
        return self._channel.is_lost

    async def open_session(self, session: OpenSession) -> None:
        """Begin, or take up again, a kernel session that lasts as long as this connection."""
        await self._ask(session)

    async def warm(self, session: str, modules: list[str]) -> None:
        """Have a process ready that has imported these installed packages."""
        await self._ask(Warm(session=session, modules=modules))

    async def stage(self, job: str, session: str, *, detach: bool) -> None:
        """Hand over a complete job directory.

        Raises:
            UserError: It is not complete, or of another protocol version.
        """
        await self._ask(Stage(job=job, session=session, detach=detach))

    async def discard(self, job: str) -> None:
        """Forget a staged job that was never submitted."""
        await self._ask(Discard(job=job))

    async def interrupt(self, job: str) -> None:
        """Raise KeyboardInterrupt in the job's running statement."""
        await self._ask(Interrupt(job=job))

    async def stage_kernel(self, job: str, kept_s: float) -> None:
        """Have a job held for a kernel that Jupyter will start."""
        await self._ask(StageKernel(job=job, kept_s=kept_s))

    async def take_kernel(
        self, job: str, env: dict[str, str], *, again: bool = False
    ) -> dict[str, str]:
        """Take a kernel job's granted units; return what they set in the environment `env`.

        Raises:
            UserError: They are not granted, taken by another kernel, or given back.
        """
        reply = await self._channel.ask(TakeKernel(job=job, env=env, again=again))
        if not isinstance(reply, LeaseTaken):
            raise BugError(f"TakeKernel was answered with {type(reply).__name__}")
        return reply.environment

    async def kernel_started(self, job: str, pid: int, start_ticks: int) -> None:
        """Name the process that is the kernel of this job."""
        await self._ask(KernelStarted(job=job, pid=pid, start_ticks=start_ticks))

    async def give_back(self, job: str) -> None:
        """Say that a kernel needs its units no more."""
        await self._ask(GiveBack(job=job))

    async def follow(self, job: str) -> AsyncGenerator[Advanced | JobOver, None]:
        """Yield `Advanced` as the output grows and, last, `JobOver`.

        Raises:
            ConnectionLost: The agent went away; the job may go on.
            UserError: The agent does not know this job.
        """
        queue = self._followers.setdefault(job, asyncio.Queue())
        try:
            await self._ask(Follow(job=job))
            while True:
                message = await queue.get()
                if isinstance(message, ConnectionLost):
                    raise message
                yield message
                if isinstance(message, JobOver):
                    return
        finally:
            self._followers.pop(job, None)

    async def close(self) -> None:
        """Close the connection; its sessions end after their grace time."""
        await self._channel.close()

    async def _ask(self, request: Message) -> None:
        reply = await self._channel.ask(request)
        if not isinstance(reply, Done):
            raise BugError(f"{type(request).__name__} was answered with {type(reply).__name__}")

    def _on_push(self, message: Message) -> None:
        if isinstance(message, Advanced | JobOver) and message.job in self._followers:
            self._followers[message.job].put_nowait(message)

    def _on_lost(self, error: ConnectionLost) -> None:
        for queue in self._followers.values():
            queue.put_nowait(error)
