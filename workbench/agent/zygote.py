"""One kernel session's zygote: imports what the notebook imported, and forks shims.

It keeps one thread, never initialises CUDA, imports nothing of the user's own files and holds no
units. The agent talks to it over a Unix socket, JSON lines each way, and may come and go:

    {"op": "warm", ...}   import these packages       → {"protocol", "spoilt_by"}
    {"op": "fork", ...}   fork a shim for this job    → {"pid", "start_ticks"} or {"spoilt_by"}
    {"op": "end"}         end when nobody needs you

`spoilt_by` names the package whose import made this process unfit to fork, where one did.

`python -m workbench.agent.zygote FD DOORBELL`: FD is a listening socket.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from workbench.agent.crews import plan_width
from workbench.agent.home import Home
from workbench.agent.process import ProcessId, is_alive, prepare_for_forks, read_stat
from workbench.agent.shell import HomeShell
from workbench.agent.shim import block_signals, run_shim, unblock_signals
from workbench.agent.wakeup import Wakeup
from workbench.boundary.libraries import loaded_libraries
from workbench.boundary.process_state import capture
from workbench.protocol.messages import PROTOCOL

KERNEL_GONE_LIMIT_S: Final = 30.0
LOOK_S: Final = 30.0
IDLE_S: Final = 0.3
"""When nobody has asked for anything for so long, there is time to import Dask."""
CHUNK_BYTES: Final = 2**16
_INSTALLED: Final = ("site-packages", "dist-packages")


class Zygote:
    """Serves the agent until it is told to end or its kernel is long gone.

    Args:
        listener: The socket on which the agent connects.
        doorbell: The agent's doorbell, for the shims.
    """

    def __init__(self, listener: socket.socket, doorbell: Path) -> None:
        self._listener = listener
        self._doorbell = doorbell
        self._home = Home(shell=HomeShell.make(), own_threads={})
        self._poll = select.poll()
        self._wakeup = Wakeup([signal.SIGCHLD])
        self._connections: dict[int, tuple[socket.socket, bytearray]] = {}
        self._imported: set[str] = set()
        self._kernel: ProcessId | None = None
        self._kernel_gone_since: float | None = None
        self._is_ending = False
        self._is_prepared = False

    def serve(self) -> None:
        """Answer until the end."""
        self._poll.register(self._listener, select.POLLIN)
        self._poll.register(self._wakeup, select.POLLIN)
        while not self._is_ending and not self._is_forgotten():
            has_time = self._kernel is not None and not self._is_prepared
            events = self._poll.poll(1000 * (IDLE_S if has_time else LOOK_S))
            for descriptor, _ in events:
                self._on_ready(descriptor)
            if has_time and not events:
                self._prepare()

    def _on_ready(self, descriptor: int) -> None:
        if descriptor == self._listener.fileno():
            connection, _ = self._listener.accept()
            self._connections[connection.fileno()] = (connection, bytearray())
            self._poll.register(connection, select.POLLIN)
        elif descriptor == self._wakeup.fileno():
            self._wakeup.take()
            _reap()
        else:
            self._read(descriptor)

    def _read(self, descriptor: int) -> None:
        connection, buffer = self._connections[descriptor]
        try:
            data = connection.recv(CHUNK_BYTES)
        except OSError:
            data = b""
        buffer += data
        while (end := buffer.find(b"\n")) >= 0:
            request = json.loads(buffer[:end])
            del buffer[: end + 1]
            answer = json.dumps(self._answer(request)).encode() + b"\n"
            with contextlib.suppress(OSError):  # An agent that died meanwhile asks again.
                connection.sendall(answer)
        if not data:
            self._poll.unregister(descriptor)
            del self._connections[descriptor]
            connection.close()

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["op"]:
            case "warm":
                return self._warm(request)
            case "fork":
                return self._fork(Path(request["directory"]))
            case _:
                self._is_ending = True
                return {}

    def _warm(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._kernel is None:
            stat = read_stat(request["kernel_pid"])
            self._kernel = stat.id if stat else None
            self._home = Home(shell=self._home.shell, own_threads=request["own_threads"])
            _enter(request["cwd"], request["sys_path"])
        with _kept_shared():
            spoilt_by = self._import(request["modules"], frozenset(request["skip"]))
            prepare_boundary()
        return {"protocol": PROTOCOL, "spoilt_by": spoilt_by}

    def _import(self, modules: Iterable[str], skip: frozenset[str]) -> str | None:
        """Import what is installed; return the module that made this process unfit to fork."""
        for name in modules:
            if name in self._imported or name.partition(".")[0] in skip or not is_installed(name):
                continue
            self._imported.add(name)
            # Whatever goes wrong here goes wrong again, and visibly, where the cell imports it.
            with contextlib.suppress(BaseException):
                importlib.import_module(name)
            if is_spoilt():
                return name.partition(".")[0]
        return None

    def _prepare(self) -> None:
        """Import what a plan with tasks needs; once."""
        self._is_prepared = True
        with _kept_shared():
            importlib.import_module("threadpoolctl")  # Dask brings numpy, which has threads.
            importlib.import_module("workbench.graphs.run")
            importlib.import_module("workbench.graphs.dask_edge").prepare()
            prepare_boundary()

    def _fork(self, directory: Path) -> dict[str, Any]:
        if not self._is_prepared and plan_width(directory) > 1:
            self._prepare()
        if is_spoilt():
            return {"spoilt_by": ""}
        block_signals()
        try:
            pid = os.fork()
            if pid == 0:
                self._close_all()
                run_shim(directory, self._doorbell, self._home)
        finally:
            unblock_signals()
        stat = read_stat(pid)  # Not reaped yet, so it is there.
        assert stat is not None
        return {"pid": pid, "start_ticks": stat.id.start_ticks}

    def _close_all(self) -> None:
        self._listener.close()
        self._wakeup.close()
        for connection, _ in self._connections.values():
            connection.close()

    def _is_forgotten(self) -> bool:
        """Whether the kernel has been gone for long and no agent is connected."""
        if self._connections or self._kernel is None or is_alive(self._kernel):
            self._kernel_gone_since = None
            return False
        if self._kernel_gone_since is None:
            self._kernel_gone_since = time.monotonic()
        return time.monotonic() - self._kernel_gone_since > KERNEL_GONE_LIMIT_S


@contextlib.contextmanager
def _kept_shared() -> Iterator[None]:
    """Have what is imported meanwhile stay shared with forks: a collection would copy it."""
    before = len(sys.modules)
    yield
    if len(sys.modules) > before or not gc.get_freeze_count():  # It may take 0.1 s.
        gc.unfreeze()
        gc.collect()
        gc.freeze()


def prepare_boundary() -> None:
    """Have the boundary import what it will need for the libraries that are here now."""
    loaded_libraries()
    capture()


def is_installed(name: str) -> bool:
    """Whether a module comes from where packages are installed, not from the user's own files."""
    top = name.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return False
    if spec is None:
        return False
    places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    return any(part in Path(place).parts for place in places for part in _INSTALLED)


def is_spoilt() -> bool:
    """Whether this process may fork no more: it has a second thread, or has opened a GPU."""
    if len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208  (names are all that is needed)
        return True
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return True
    return any(
        target.startswith("/dev/nvidia") for target in map(_link, Path("/proc/self/fd").iterdir())
    )


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _enter(cwd: str, sys_path: list[str]) -> None:
    try:
        os.chdir(cwd)
    except OSError:  # It is gone; as in the kernel, no relative path may lead anywhere else.
        with tempfile.TemporaryDirectory() as gone:
            os.chdir(gone)
    sys.path[:] = sys_path


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def main() -> None:
    """Run the zygote that the launcher asked for."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(listener.fileno(), False)  # noqa: FBT003  (the standard library's)
    listener.setblocking(False)  # noqa: FBT003  (as above)
    prepare_for_forks()
    gc.disable()
    Zygote(listener, Path(sys.argv[2])).serve()


if __name__ == "__main__":
    main()
