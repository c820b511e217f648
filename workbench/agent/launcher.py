"""The launcher: parent of the agent and of zygotes. Standard library only, one thread.

`python -m workbench.agent.launcher [options of the agent]`, started on demand by the first client
and by `workbench up`. It restarts the agent when that dies, starts zygotes when the agent asks,
adopts the orphans of its children and reaps them. When it dies the agent ends too, but jobs go on:
the next agent finds them in their directories.

The agent speaks over a socket pair, JSON lines each way:

    {"op": "ready"}                                            the agent serves
    {"op": "zygote", "id", "socket", "log", "argv", "env"}     → {"id", "pid"} or {"id", "error"}
    {"op": "keeper", "id", "directory", "doorbell", "kept_s"}  → {"id", "pid", "start_ticks"}
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, Final

from workbench.agent.keeper import SIGNALS, run_keeper
from workbench.agent.log_file import write_to_log
from workbench.agent.process import adopt_orphans, read_stat
from workbench.agent.wakeup import Wakeup
from workbench.core.errors import WorkbenchError
from workbench.transport.paths import runtime_directory, state_directory

LOCK: Final = "agent.lock"
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 10.0
LONG_LIFE_S: Final = 30.0
CHUNK_BYTES: Final = 2**16
CHILD_SOCKET, CHILD_LOCK = 3, 4
_CLEAN_SIGNALS: Final = (signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE)


class Launcher:
    """Keeps one agent running.

    Args:
        lock: Descriptor of the lock file, held; the agent holds it too, so that no other launcher
            starts while an agent is left.
        options: The agent's command line options.
    """

    def __init__(self, lock: int, options: list[str]) -> None:
        self._lock = lock
        self._options = options
        self._agent = 0
        self._socket: socket.socket | None = None
        self._wakeup = Wakeup([signal.SIGCHLD])
        self._buffer = bytearray()
        self._was_ready = False
        self._started_at = 0.0
        self._pause_s = FIRST_PAUSE_S

    def run(self) -> int:
        """Serve until the agent ends on purpose; return the exit code."""
        self._start_agent()
        while True:
            waiting = [one for one in (self._wakeup, self._socket) if one is not None]
            for one in select.select(waiting, [], [])[0]:
                if one is self._wakeup:
                    self._wakeup.take()
                    code = self._reap()
                    if code is not None:
                        return code
                elif one is self._socket:
                    self._read()

    def _start_agent(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._buffer.clear()
        with theirs:
            self._agent = _spawn(
                [sys.executable, "-P", "-m", "workbench.agent", *self._options],
                dict(os.environ),
                {CHILD_SOCKET: theirs.fileno(), CHILD_LOCK: self._lock},
            )
        self._started_at = time.monotonic()

    def _reap(self) -> int | None:
        """Reap whoever ended; return the launcher's exit code where the agent is not wanted."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                return None
            if pid == self._agent:
                code = os.waitstatus_to_exitcode(status)
                if code == 0 or not self._was_ready:
                    return code if code >= 0 else 1
                self._restart_agent(code)

    def _restart_agent(self, code: int) -> None:
        if self._socket is not None:
            self._socket.close()
        if time.monotonic() - self._started_at > LONG_LIFE_S:
            self._pause_s = FIRST_PAUSE_S
        print(f"the agent ended with code {code}; it is started again", file=sys.stderr)  # noqa: T201
        time.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._start_agent()

    def _read(self) -> None:
        assert self._socket is not None
        try:
            data = self._socket.recv(CHUNK_BYTES)
        except OSError:
            data = b""
        if not data:  # The agent is ending; SIGCHLD says how.
            self._socket.close()
            self._socket = None
            return
        self._buffer += data
        while (end := self._buffer.find(b"\n")) >= 0:
            request = json.loads(self._buffer[:end])
            del self._buffer[: end + 1]
            if request["op"] == "ready":
                self._was_ready = True
                write_to_log()
            elif request["op"] == "keeper":
                self._answer(self._fork_keeper(request))
            else:
                self._answer(_start_zygote(request))

    def _answer(self, answer: dict[str, Any]) -> None:
        assert self._socket is not None
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(answer).encode() + b"\n")

    def _fork_keeper(self, request: dict[str, Any]) -> dict[str, Any]:
        """Fork the keeper of a kernel's lease; it goes on when the launcher ends."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                # The lock must be free when launcher and agent are gone, whoever goes on.
                os.close(self._lock)
                self._wakeup.close()
                if self._socket is not None:
                    self._socket.close()
                run_keeper(Path(request["directory"]), Path(request["doorbell"]), request["kept_s"])
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        stat = read_stat(pid)  # Not reaped yet, so it is there.
        assert stat is not None
        return {"id": request["id"], "pid": pid, "start_ticks": stat.id.start_ticks}


def _start_zygote(request: dict[str, Any]) -> dict[str, Any]:
    """Start a zygote with a listening socket of its own and say its pid."""
    path = Path(request["socket"])
    try:
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(os.fspath(path))
            path.chmod(0o600)
            listener.listen()
            pid = _spawn(
                request["argv"],
                request["env"],
                {CHILD_SOCKET: listener.fileno()},
                log=request["log"],
            )
    except OSError as error:
        return {"id": request["id"], "error": f"{request['argv'][0]}: {error.strerror}"}
    return {"id": request["id"], "pid": pid}


def _spawn(
    argv: list[str], env: dict[str, str], descriptors: dict[int, int], log: str | None = None
) -> int:
    """Exec a program in a session of its own, with these descriptors and an empty stdin.

    Raises:
        OSError: The program cannot be run.
    """
    # First to high numbers: a descriptor that is to be moved may stand where another one goes.
    high = {
        target: fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 64)
        for target, descriptor in descriptors.items()
    }
    actions: list[Any] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    if log is not None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        actions += [
            (os.POSIX_SPAWN_OPEN, 1, log, flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
    actions += [(os.POSIX_SPAWN_DUP2, descriptor, target) for target, descriptor in high.items()]
    try:
        return os.posix_spawn(
            argv[0], argv, env, file_actions=actions, setsid=True, setsigdef=_CLEAN_SIGNALS
        )
    finally:
        for descriptor in high.values():
            os.close(descriptor)


def _take_lock(path: Path) -> int | None:
    """Return a descriptor that holds the lock for life, or None where another launcher does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def main() -> int:
    """Run the launcher; 0 where another one runs already."""
    try:
        state_directory()  # Says what is wrong with it while somebody listens.
        lock = _take_lock(runtime_directory() / LOCK)
        if lock is None:
            return 0
        adopt_orphans()
        return Launcher(lock, sys.argv[1:]).run()
    except (WorkbenchError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201  (whoever started us shows it)
        return 1


if __name__ == "__main__":
    sys.exit(main())
