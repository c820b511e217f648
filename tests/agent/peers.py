"""The peers that the tests play: a controller, a client."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.protocol import messages as m
from workbench.transport.connection import Connection, serve
from workbench.transport.errors import ConnectionLost

LIMIT_S = 20.0


async def until(condition: Callable[[], Any], what: str = "") -> Any:
    """Wait until `condition` holds and return what it gave."""
    async with asyncio.timeout(LIMIT_S):
        while not (value := condition()):
            await asyncio.sleep(0.005)
        return value


class Controller:
    """Plays the controller on a real socket, for one agent at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.agent: Connection[Any] | None = None
        self.attached: list[m.Attach] = []
        self.confirmed: list[m.LeaseConfirmed] = []
        self.overs: list[m.LeaseOver] = []
        self.cancelled: list[m.Cancel] = []
        self.live: list[m.JobView] = []
        self.strange: list[m.Message] = []
        self._leases = itertools.count(1)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await serve(self.path, m.ControllerRequest, self._on_connection, mode=0o600)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        if self.agent is not None:
            await self.agent.close()
        await asyncio.sleep(0)
        self.path.unlink(missing_ok=True)

    async def _on_connection(self, connection: Connection[Any]) -> None:
        while True:
            identity, message = await connection.receive()
            match message:
                case m.Hello():
                    connection.send(identity, self._welcome())
                    continue
                case m.GetStatus():
                    connection.send(identity, self._status())
                    continue
                case m.Attach():
                    self.agent = connection
                    self.attached.append(message)
                case m.LeaseConfirmed():
                    self.confirmed.append(message)
                case m.LeaseOver():
                    self.overs.append(message)
                case m.Cancel():
                    self.cancelled.append(message)
                case _:
                    self.strange.append(message)
            connection.send(identity, m.Done())

    def _welcome(self) -> m.Welcome:
        return m.Welcome(
            protocol=m.PROTOCOL, software="test", pid=os.getpid(), mode="lab", started_unix_s=0.0
        )

    def _status(self) -> m.Status:
        view = m.ControllerView(
            hostname="here",
            mode="lab",
            uid=os.getuid(),
            pid=os.getpid(),
            software="test",
            protocol=m.PROTOCOL,
            simulated=False,
        )
        return m.Status(controller=view, sample=None, jobs=self.live, ended=[], notices=[])

    async def push(self, message: m.Message) -> None:
        agent = await until(lambda: self.agent, "an attached agent")
        agent.send(0, message)

    async def grant(self, job: str, *, lease: str | None = None, **units: Any) -> str:
        """Grant `job`; return the lease id."""
        lease = lease or f"L{next(self._leases)}"
        gpus, cores = units.get("gpus", []), units.get("cores", 2)
        await self.push(
            m.GrantPush(
                lease=lease,
                job=job,
                gpus=gpus,
                cores=cores,
                simulated=units.get("simulated", False),
            )
        )
        return lease

    async def stop_lease(
        self, lease: str, job: str, reason: str = "cancelled by its owner", **how: Any
    ) -> None:
        await self.push(m.StopPush(lease=lease, job=job, reason=reason, **how))

    def ending(self, lease: str) -> m.LeaseEnding | None:
        return next((one.ending for one in self.overs if one.lease == lease), None)

    async def over(self, lease: str) -> m.LeaseEnding:
        """Wait until the lease is reported over."""
        ending = await until(lambda: self.ending(lease), f"the end of {lease}")
        assert isinstance(ending, m.LeaseEnding)
        return ending

    async def running(self, lease: str) -> None:
        """Wait until the lease is confirmed."""
        started = lambda: any(one.lease == lease for one in self.confirmed)  # noqa: E731
        await until(started, f"the start of {lease}")


class Client:
    """One client connection to the agent."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        self.pushes: list[m.Message] = []
        self.welcome: m.Welcome | None = None
        self._answers: dict[int, asyncio.Future[m.Message]] = {}
        self._ids = itertools.count(1)
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            while True:
                identity, message = await self.connection.receive()
                if identity == 0:
                    self.pushes.append(message)
                else:
                    self._answers.pop(identity).set_result(message)
        except ConnectionLost as error:
            for asker in self._answers.values():
                asker.set_exception(error)

    async def ask(self, message: m.Message) -> m.Message:
        identity = next(self._ids)
        self._answers[identity] = asyncio.get_running_loop().create_future()
        self.connection.send(identity, message)
        async with asyncio.timeout(LIMIT_S):
            return await self._answers[identity]

    async def done(self, message: m.Message) -> None:
        answer = await self.ask(message)
        assert isinstance(answer, m.Done), answer

    async def over(self, job: str) -> m.JobOver:
        """Wait for the push that says that a followed job ended."""
        find = lambda: next(  # noqa: E731
            (p for p in self.pushes if isinstance(p, m.JobOver) and p.job == job), None
        )
        push = await until(find, f"JobOver of {job}")
        assert isinstance(push, m.JobOver)
        return push

    async def close(self) -> None:
        self._reading.cancel()
        await self.connection.close()
