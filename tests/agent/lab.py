"""A lab of one user with real processes: the tests play the controller and the client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.peers import LIMIT_S, Client, Controller, until
from workbench.boundary import Crossing, pack, stage
from workbench.protocol import messages as m
from workbench.protocol.job_files import CellSpec, read_json, write_spec
from workbench.protocol.text import carried
from workbench.transport.connection import connect
from workbench.transport.errors import ConnectionLost, NobodyListens
from workbench.transport.start import ensure_running

OPTIONS = ("--grace-s", "0.4", "--poll-s", "0.2", "--look-s", "0.1")


class Lab:
    """Agent, launcher and zygotes in a place of their own; the test is everybody else."""

    m = m
    until = staticmethod(until)

    def __init__(self, place: Path, options: tuple[str, ...] = OPTIONS) -> None:
        self.place = place
        self.runtime = place / "gpu-workbench"
        self.jobs = place / "gpu-workbench" / "jobs"
        self.options = options
        self.controller = Controller(place / "controller.sock")
        self.client: Client | None = None
        self._clients: list[Client] = []
        self._sent: dict[str, tuple[dict[str, Any], Crossing]] = {}
        self.session = secrets.token_hex(16)
        self.modules: list[str] = []
        self.kernel_path: list[str] = []
        self.cwd: str | None = None
        self.python = sys.executable
        self.kernel_pid = os.getpid()

    # --- processes ---

    async def start(self) -> None:
        await self.controller.start()
        await self.start_agent()

    async def start_agent(self) -> Client:
        """Start what is not running, connect, and open the session."""
        socket = self.runtime / "agent.sock"
        self.runtime.mkdir(mode=0o700, exist_ok=True)
        argv = [sys.executable, "-P", "-m", "workbench.agent.launcher", *self.options]
        await asyncio.to_thread(
            ensure_running, socket, socket.with_suffix(".start"), argv, timeout_s=LIMIT_S
        )
        self.client = await self.connect()
        await self.client.done(self.opening())
        return self.client

    async def connect(self) -> Client:
        async with asyncio.timeout(LIMIT_S):
            while True:
                try:
                    connection = await connect(
                        self.runtime / "agent.sock", m.AgentReply, trusted_uids=(os.getuid(),)
                    )
                except NobodyListens:
                    await asyncio.sleep(0.02)
                    continue
                client = Client(connection)
                self._clients.append(client)
                try:
                    hello = m.Hello(protocol=m.PROTOCOL, software="test")
                    welcome = await client.ask(hello)
                except ConnectionLost:
                    continue
                assert isinstance(welcome, m.Welcome)
                client.welcome = welcome
                return client

    def opening(self, session: str | None = None) -> m.OpenSession:
        return m.OpenSession(
            session=session or self.session,
            python=self.python,
            env={carried(name): carried(value) for name, value in os.environ.items()},
            cwd=carried(str(self.place) if self.cwd is None else self.cwd),
            sys_path=[carried(place) for place in (*self.kernel_path, *sys.path)],
            modules=self.modules,
            kernel_pid=self.kernel_pid,
        )

    @property
    def agent_pid(self) -> int:
        assert self.client is not None
        assert self.client.welcome is not None
        return self.client.welcome.pid

    def processes(self, *words: str) -> list[int]:
        """Pids of this lab's processes whose command line has all `words`."""
        mine = f"XDG_RUNTIME_DIR={self.place}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if mine in (entry / "environ").read_bytes().split(b"\0") and all(
                    word in command for word in words
                ):
                    found.append(int(entry.name))
        return sorted(found)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()
        await self.controller.stop()

    def end(self) -> None:
        """Kill whatever this lab still runs."""
        for _ in range(100):
            left = [pid for pid in self.processes() if not is_gone(pid)]
            if not left:
                return
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def zygotes(self) -> list[int]:
        """Pids of zygotes; shims and homes have their command line, but a lease's mark."""
        idle = f"GPU_WORKBENCH_LEASE={'-' * 64}".encode()
        found = []
        for pid in self.processes("workbench.agent.zygote"):
            with contextlib.suppress(OSError):
                if idle in Path(f"/proc/{pid}/environ").read_bytes():
                    found.append(pid)
        return found

    def children(self, pid: int) -> list[int]:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    # --- jobs ---

    def prepare(self, source: str, **names: Any) -> str:
        """Write a complete job directory; return the job id."""
        job = secrets.token_hex(16)
        directory = self.jobs / job
        directory.mkdir(mode=0o700, parents=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "path", [*self.kernel_path, *sys.path])
            crossing = pack(names, list(names))
        crossing.write(directory)
        self._sent[job] = (names, crossing)
        write_spec(
            directory,
            CellSpec(
                protocol=m.PROTOCOL,
                job=job,
                session=self.session,
                source=self.transform(source),
                raw=source,
                filename="<cell-7>",
                first_line=2,
                execution_count=7,
                plan={},
            ),
        )
        return job

    @staticmethod
    def transform(source: str) -> str:
        from IPython.core.inputtransformer2 import TransformerManager

        return TransformerManager().transform_cell(source)

    async def stage(self, source: str, *, detach: bool = False, **names: Any) -> str:
        """Prepare and stage a cell; return the job id."""
        job = self.prepare(source, **names)
        assert self.client is not None
        await self.client.done(m.Stage(job=job, session=self.session, detach=detach))
        return job

    def result(self, ran: Ran) -> dict[str, Any]:
        """The notebook's names after the job's result was committed to them."""
        names, crossing = self._sent[ran.directory.name]
        stage(crossing, ran.directory).commit(names)
        return names

    @staticmethod
    def is_gone(pid: int) -> bool:
        return is_gone(pid)

    def ran(self, job: str) -> Ran:
        """What a job has left so far."""
        return Ran(self.jobs / job)

    def view(self, job: str) -> m.JobView:
        """A queued job as the controller shows it."""
        return m.JobView(
            id=job,
            owner_uid=os.getuid(),
            owner="me",
            mine=True,
            kind="cell",
            name=None,
            notebook=None,
            priority="normal",
            state="queued",
            place=1,
            reason="",
            estimate=None,
            request=m.RequestSpec(kind="cell"),
            gpus=[],
            cores=1,
            submitted_unix_s=0.0,
            started_unix_s=None,
            ended_unix_s=None,
            outcome=None,
        )

    @staticmethod
    def plain(text: str) -> str:
        """The text without colours."""
        return re.sub(r"\x1b\[[0-9;]*m", "", text)

    async def run(self, source: str, *, units: dict[str, Any] | None = None, **names: Any) -> Ran:
        """Stage and grant a cell and wait until its lease is over."""
        job = await self.stage(source, **names)
        lease = await self.controller.grant(job, **(units or {}))
        ending = await self.controller.over(lease)
        return Ran(self.jobs / job, ending)

    async def ready(self, job: str) -> None:
        """Wait until the cell has printed a line that begins with READY."""
        find = lambda: re.search(r"^READY.*\n", self.ran(job).text(), re.MULTILINE)  # noqa: E731
        await until(find, "READY")

    async def begin(self, source: str, **names: Any) -> tuple[str, str, int]:
        """Stage and grant a cell that prints READY; return job, lease and shim when it has."""
        job = await self.stage(source, **names)
        lease = await self.controller.grant(job)
        await self.controller.running(lease)
        await self.ready(job)
        return job, lease, self.shim(job)

    def shim(self, job: str) -> int:
        """The pid of a running job's shim."""
        record = read_json(self.jobs / job / "shim.json")
        assert record is not None
        return int(record["pid"])


class Ran:
    """What a job left in its directory."""

    def __init__(self, directory: Path, ending: m.LeaseEnding | None = None) -> None:
        self.directory = directory
        self.ending = ending

    def lines(self, kind: str | None = None) -> list[dict[str, Any]]:
        path = self.directory / "output.jsonl"
        if not path.exists():
            return []
        lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1] if line]
        return [line for line in lines if kind in {None, line["kind"]}]

    def text(self, name: str = "stdout") -> str:
        return "".join(line["text"] for line in self.lines("stream") if line["name"] == name)

    def error(self) -> str:
        return "\n".join("\n".join(line["traceback"]) for line in self.lines("error"))

    def ended(self) -> dict[str, Any] | None:
        return read_json(self.directory / "ended.json")


def is_gone(pid: int) -> bool:
    """Whether no such process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


MakeLab = Callable[..., Awaitable[Lab]]
