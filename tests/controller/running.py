"""A real controller in directories of its own, and peers that speak its protocol."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from workbench.protocol.messages import (
    PROTOCOL,
    Attach,
    ControllerReply,
    Failure,
    GetStatus,
    GrantPush,
    HeldLease,
    Hello,
    JobView,
    LeaseConfirmed,
    LeaseEnding,
    LeaseOver,
    Message,
    RequestSpec,
    Status,
    StopPush,
    Submit,
    Watch,
)
from workbench.transport.connection import Connection, connect
from workbench.transport.errors import ConnectionLost, NobodyListens

PATIENCE_S = 20.0


def new_id() -> str:
    """A job id as a client makes it."""
    return secrets.token_hex(16)


class Refused(Exception):
    """The controller answered with a `Failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.error}: {failure.message}. {failure.next_step}")
        self.failure = failure


class Peer:
    """A client or agent that speaks the protocol; keeps every push until the test takes it."""

    def __init__(self, connection: Connection[ControllerReply], socket: Path) -> None:
        self.connection = connection
        self.socket = socket
        self.pushes: asyncio.Queue[Message] = asyncio.Queue()
        self.is_gone = False
        self._askers: dict[int, asyncio.Future[Message]] = {}
        self._last_id = 0
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, socket: Path) -> Peer:
        peer = cls(await connect(socket, ControllerReply, trusted_uids=(os.getuid(),)), socket)
        await peer.ask(Hello(protocol=PROTOCOL, software="test"))
        return peer

    async def ask(self, request: Message) -> Message:
        """Send a request and return its reply.

        Raises:
            Refused: The reply is a `Failure`.
            ConnectionLost: The controller went away.
        """
        self._last_id += 1
        asker = self._askers[self._last_id] = asyncio.get_running_loop().create_future()
        self.connection.send(self._last_id, request)
        reply = await asyncio.wait_for(asker, PATIENCE_S)
        if isinstance(reply, Failure):
            raise Refused(reply)
        return reply

    async def push(self) -> Message:
        """The next push."""
        return await asyncio.wait_for(self.pushes.get(), PATIENCE_S)

    async def lost(self) -> None:
        """Wait until the controller has closed the connection."""
        await asyncio.wait_for(self._reading, PATIENCE_S)

    async def close(self) -> None:
        self.is_gone = True
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self.connection.close()

    async def _read(self) -> None:
        try:
            while True:
                identity, body = await self.connection.receive()
                if identity:
                    self._askers.pop(identity).set_result(body)
                else:
                    self.pushes.put_nowait(body)
        except ConnectionLost as error:
            self.is_gone = True
            for asker in self._askers.values():
                asker.set_exception(error)
            self._askers.clear()

    # --- as a client ---------------------------------------------------------------------------

    async def submit(self, *, job: str | None = None, name: str = "test", **request: object) -> str:
        job = job or new_id()
        spec = RequestSpec(kind="cell", **request)  # type: ignore[arg-type]
        await self.ask(Submit(job=job, request=spec, name=name))
        return job

    async def status(self) -> Status:
        status = await self.ask(GetStatus())
        assert isinstance(status, Status)
        return status

    async def job(self, job: str) -> JobView:
        """What the controller shows of one job."""
        status = await self.status()
        return next(view for view in (*status.jobs, *status.ended) if view.id == job)

    async def until(self, job: str, holds: Callable[[JobView], bool]) -> JobView:
        """Watch a job, over a connection of its own, until what is shown is as asked for."""
        watcher = await Peer.connect(self.socket)
        try:
            status = await watcher.ask(Watch(job=job))
            while True:
                assert isinstance(status, Status)
                for view in (*status.jobs, *status.ended):
                    if holds(view):
                        return view
                status = await watcher.push()
        finally:
            await watcher.close()

    # --- as an agent ---------------------------------------------------------------------------

    async def attach(self, *leases: HeldLease) -> None:
        await self.ask(Attach(leases=list(leases)))

    async def grant(self) -> GrantPush:
        push = await self.push()
        assert isinstance(push, GrantPush), push
        return push

    async def stop(self) -> StopPush:
        push = await self.push()
        assert isinstance(push, StopPush), push
        return push

    async def confirm(self, grant: GrantPush) -> None:
        await self.ask(LeaseConfirmed(lease=grant.lease))

    async def over(self, lease: str, ending: LeaseEnding | None = None) -> None:
        await self.ask(LeaseOver(lease=lease, ending=ending or LeaseEnding(outcome="done")))

    async def assert_nothing_more(self) -> None:
        """Fail if anything was pushed that no test asked for."""
        await self.status()  # Whatever was sent before this answer has arrived.
        assert self.pushes.empty(), self.pushes.get_nowait()


class Place:
    """Directories of one controller's own, and the controller while it runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runtime, self.state = root / "run/gpu-workbench", root / "state/gpu-workbench"
        (root / "run").mkdir(mode=0o700)
        self.socket = self.runtime / "controller.sock"
        self.env = dict(os.environ) | {
            "XDG_RUNTIME_DIR": str(root / "run"),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_DATA_HOME": str(root / "data"),
        }
        self.env.pop("WORKBENCH_CONTROLLER", None)
        self._started: list[subprocess.Popen[str]] = []
        self._peers: list[Peer] = []

    @property
    def process(self) -> subprocess.Popen[str]:
        """The controller that was started last."""
        return self._started[-1]

    @property
    def log(self) -> str:
        return (self.state / "controller.log").read_text()

    def spawn(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a controller without waiting for it."""
        process = subprocess.Popen(
            [sys.executable, "-m", "workbench.controller", *arguments],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    async def start(self, *arguments: str) -> None:
        """Start a controller and wait until it serves."""
        process = self.spawn(*arguments)
        while True:
            assert process.poll() is None, process.communicate()
            try:
                connection = await connect(
                    self.socket, ControllerReply, trusted_uids=(os.getuid(),)
                )
            except NobodyListens:
                await asyncio.sleep(0.01)
            else:
                await connection.close()
                return

    async def simulate(self, gpus: int) -> None:
        await self.start("--simulate", f"{gpus}xA100-SXM4-80GB")

    def kill(self) -> None:
        """End the controller as the kernel's out-of-memory killer does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    async def peer(self) -> Peer:
        """A new connection, greeted."""
        peer = await Peer.connect(self.socket)
        self._peers.append(peer)
        return peer

    async def agent(self, *leases: HeldLease) -> Peer:
        """A new connection that is this user's agent."""
        peer = await self.peer()
        await peer.attach(*leases)
        return peer

    async def close(self) -> None:
        """End everything; fail if a peer was sent what no test expected."""
        try:
            for peer in self._peers:
                if not peer.is_gone:
                    await peer.assert_nothing_more()
        finally:
            for peer in self._peers:
                await peer.close()
            for process in self._started:
                if process.poll() is None:
                    process.kill()
                process.communicate()
