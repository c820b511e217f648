"""Kernel sessions, and their zygotes as the agent sees them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from workbench.agent.errors import CannotStart, NotHere, ProtocolMismatch, ZygoteLost
from workbench.agent.launcher_link import LauncherLink
from workbench.agent.output import DOORBELL
from workbench.agent.process import (
    NO_LEASE,
    ProcessId,
    is_alive,
    read_stat,
    send_signal,
)
from workbench.agent.threads import own_values, single_threaded
from workbench.protocol.environment import MARK
from workbench.protocol.messages import PROTOCOL, OpenSession

LOG: Final = logging.getLogger(__name__)
ATTEMPTS: Final = 3
WARM_LIMIT_S: Final = 300.0
END_ALL_S: Final = 1.0
LINE_LIMIT_BYTES: Final = 2**24
_LAST_WORDS_BYTES: Final = 2000


class Zygote:
    """A connection to one zygote. `Session` makes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, **request: Any) -> dict[str, Any]:
        """Send one request and return its answer; one at a time.

        Raises:
            ZygoteLost: It went away first; whether it carried the request out is unknown.
        """
        try:
            self._writer.write(json.dumps(request).encode() + b"\n")
            await self._writer.drain()
            line = await self._reader.readline()
        except OSError as error:
            raise ZygoteLost("the session's zygote went away") from error
        if not line:
            raise ZygoteLost("the session's zygote went away")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Close the connection; the zygote goes on."""
        self._writer.close()


class Session:
    """One kernel session.

    Args:
        opening: What the kernel said of itself.
        runtime: The folder of sockets.
        launcher: Starts zygotes.
    """

    def __init__(self, opening: OpenSession, runtime: Path, launcher: LauncherLink) -> None:
        self.opening = opening
        self.connections = 0
        self.gone_since = time.monotonic()
        self._launcher = launcher
        # As long as `agent.sock` and seven more bytes: it fits wherever that one does.
        self._socket = runtime / f"z{opening.session[:11]}.sock"
        self._log = self._socket.with_suffix(".log")
        self._doorbell = runtime / DOORBELL
        self._zygote: Zygote | None = None
        self._modules = dict.fromkeys(opening.modules)
        self._process: ProcessId | None = None
        self._skip: set[str] = set()
        self._lock = asyncio.Lock()
        kernel = read_stat(opening.kernel_pid)
        self._kernel = None if kernel is None else kernel.id

    @property
    def is_kernel_gone(self) -> bool:
        """Whether the kernel's process has ended."""
        return self._kernel is None or not is_alive(self._kernel)

    async def warm(self, modules: list[str]) -> None:
        """Have a zygote that has imported these, and what was asked for before.

        Raises:
            CannotStart: The session's Python cannot run one; the message says why.
        """
        async with self._lock:
            await self._warm(modules)

    async def fork(self, directory: Path) -> ProcessId:
        """Fork a shim for the job in `directory` and return it.

        A zygote that dies in the middle is replaced and asked again: of two shims for one job the
        second ends at once.

        Raises:
            CannotStart: No zygote could do it.
        """
        async with self._lock:
            for _ in range(ATTEMPTS):
                zygote = self._zygote or await self._warm([])
                try:
                    answer = await zygote.ask(op="fork", directory=os.fspath(directory))
                except ZygoteLost:
                    self._drop()
                    continue
                if "pid" in answer:
                    return ProcessId(pid=answer["pid"], start_ticks=answer["start_ticks"])
                await self._replace(None)
            raise CannotStart(f"{self.opening.python} could not fork a job: {self._last_words()}")

    async def end(self) -> None:
        """End the zygote; it can be started again."""
        async with self._lock:
            with contextlib.suppress(OSError, ZygoteLost):
                zygote = self._zygote or await self._connect()
                await zygote.ask(op="end")
            self._drop()
            for path in (self._socket, self._log):
                path.unlink(missing_ok=True)

    async def _warm(self, modules: list[str]) -> Zygote:
        self._modules.update(dict.fromkeys(modules))
        losses = 0
        while losses < ATTEMPTS:
            try:
                zygote = self._zygote or await self._reach()
                async with asyncio.timeout(WARM_LIMIT_S):
                    spoilt_by = await self._import(zygote)
            except (ZygoteLost, TimeoutError):
                # Some package ends a process that imports it, or never lets go; it must not take
                # the session along: the next zygote imports nothing.
                losses += 1
                self._skip.update(name.partition(".")[0] for name in self._modules)
                self._abandon()
                continue
            self._zygote = zygote
            if spoilt_by is None:
                return zygote
            losses += spoilt_by in self._skip
            await self._replace(spoilt_by)
        raise CannotStart(f"{self.opening.python} cannot run jobs: {self._last_words()}")

    async def _import(self, zygote: Zygote) -> str | None:
        """Have the zygote import; return the module that spoilt it."""
        answer = await zygote.ask(
            op="warm",
            modules=list(self._modules),
            skip=sorted(self._skip),
            sys_path=self.opening.sys_path,
            cwd=self.opening.cwd,
            kernel_pid=self.opening.kernel_pid,
            own_threads=own_values(self.opening.env),
        )
        if answer["protocol"] != PROTOCOL:
            raise ProtocolMismatch(
                f"{self.opening.python} speaks protocol {answer['protocol']}, this agent "
                f"{PROTOCOL}",
                next_step="Run `pip install -U gpu-workbench` in both, then `workbench down`",
            )
        spoilt_by: str | None = answer["spoilt_by"]
        return spoilt_by

    async def _reach(self) -> Zygote:
        """Connect to the zygote that is there from before, or to a new one."""
        with contextlib.suppress(OSError):
            return await self._connect()
        environment = {**single_threaded(self.opening.env), MARK: NO_LEASE}
        argv = [self.opening.python, "-P", "-m", "workbench.agent.zygote", "3"]
        pid = await self._launcher.start_zygote(
            socket=self._socket,
            log=self._log,
            argv=[*argv, os.fspath(self._doorbell)],
            env=environment,
        )
        stat = read_stat(pid)
        self._process = stat.id if stat else None
        try:
            return await self._connect()
        except OSError as error:
            raise ZygoteLost("the session's zygote ended at once") from error

    async def _connect(self) -> Zygote:
        return Zygote(*await asyncio.open_unix_connection(self._socket, limit=LINE_LIMIT_BYTES))

    async def _replace(self, culprit: str | None) -> None:
        """Throw the zygote away; the next one does not import the culprit."""
        if culprit:
            LOG.info("a zygote was spoilt by importing %s and is replaced", culprit)
            self._skip.add(culprit)
        zygote, self._zygote = self._zygote, None
        self._socket.unlink(missing_ok=True)
        if zygote is not None:
            with contextlib.suppress(ZygoteLost):
                await zygote.ask(op="end")
            zygote.close()

    def _drop(self) -> None:
        if self._zygote is not None:
            self._zygote.close()
        self._zygote = None

    def _abandon(self) -> None:
        """Have nothing more to do with a zygote that died or hangs."""
        self._drop()
        self._socket.unlink(missing_ok=True)
        if self._process is not None:
            send_signal(self._process, signal.SIGKILL)

    def _last_words(self) -> str:
        try:
            lines = self._log.read_bytes()[-_LAST_WORDS_BYTES:].decode("utf-8", "replace")
        except OSError:
            return "it left no message"
        return (lines.strip().splitlines() or ["it said nothing"])[-1]


class Sessions:
    """All sessions, by id.

    Args:
        runtime: The folder of sockets.
        launcher: Starts zygotes.
    """

    def __init__(self, runtime: Path, launcher: LauncherLink) -> None:
        self._runtime = runtime
        self._launcher = launcher
        self._sessions: dict[str, Session] = {}

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def get(self, session: str) -> Session:
        """Return the session.

        Raises:
            NotHere: It was never opened here, or has ended.
        """
        found = self._sessions.get(session)
        if found is None:
            raise NotHere(
                f"this agent knows no session {session}", next_step="Send OpenSession first"
            )
        return found

    def know(self, opening: OpenSession) -> Session:
        """Return the session, made where it is not known: opened now, or by a job's record."""
        if opening.session not in self._sessions:
            session = Session(opening, self._runtime, self._launcher)
            self._sessions[opening.session] = session
        return self._sessions[opening.session]

    async def end(self, session: Session) -> None:
        """Forget a session and end its zygote."""
        self._sessions.pop(session.opening.session, None)
        await session.end()

    def end_all(self) -> None:
        """Have every zygote end, also one of a session that this agent never knew.

        Jobs that run go on; whoever needs a zygote again starts another one.
        """
        for path in self._runtime.glob("z*.sock"):
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as zygote:
                zygote.settimeout(END_ALL_S)
                zygote.connect(os.fspath(path))
                zygote.sendall(b'{"op": "end"}\n')
            path.unlink(missing_ok=True)
