"""Start a server on demand, once, however many ask. Standard library only.

Two locks are at work: the starter's (`lock_path` here, held only until the server answers) and the
server's own (held for its life, taken by the server itself). They must be different files.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from workbench.core.errors import PeerError
from workbench.protocol.environment import MARK
from workbench.transport.errors import BadPlace

POLL_S: Final = 0.02
AGAIN_S: Final = 0.2
SCOPE_TIMEOUT_S: Final = 3.0
LINGERING: Final = Path("/var/lib/systemd/linger")
"""Holds a file for each user whose service manager runs on after logout."""
_SCOPE: Final = ("systemd-run", "--user", "--scope", "--quiet", "--collect", "--")
_LAST_WORDS_BYTES: Final = 2000
_STARTED: Final[list[subprocess.Popen[bytes]]] = []
"""Servers that outlive their starter on purpose; kept so that their ends can be reaped."""


def ensure_running(
    socket_path: Path,
    lock_path: Path,
    argv: Sequence[str],
    *,
    timeout_s: float,
    in_own_scope: bool = False,
) -> None:
    """Return once something listens on `socket_path`, having started `argv` where nothing did.

    The server gets a session of its own, no terminal, and outlives the caller.

    Args:
        socket_path: The Unix socket on which the server listens.
        lock_path: Held while starting; made where missing. Not the server's own lock.
        argv: The server's command line.
        timeout_s: Seconds to wait in all.
        in_own_scope: Put the server outside the caller's control group, where that is possible.

    Raises:
        BadPlace: The lock file cannot be made.
        PeerError: The server ended before it listened, or does not listen in time; the message
            ends with the last line that it wrote.
    """
    deadline = time.monotonic() + timeout_s
    try:
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadPlace(
            f"{lock_path} cannot be opened: {error.strerror}",
            next_step=f"Make {lock_path.parent} writable, or set XDG_RUNTIME_DIR to another one",
        ) from error
    with os.fdopen(descriptor):
        while not _lock(descriptor):
            if _listens(socket_path):
                return
            if time.monotonic() > deadline:
                raise PeerError(
                    f"another process has been starting a server for {socket_path} for "
                    f"{timeout_s:g} s",
                    next_step=f"End whoever holds {lock_path} (fuser {lock_path}) and try again",
                )
            time.sleep(POLL_S)
        if not _listens(socket_path):
            scope = _SCOPE if in_own_scope and not why_no_scope() else ()
            _start(socket_path, [*scope, *argv], deadline, timeout_s)


def why_no_scope() -> str:
    """Return why no server can be put outside this control group; empty where one can.

    A scope belongs to the user's service manager. Without linger that ends when the user logs out,
    and with it all that runs in the scope; what a session started goes on.

    Source:
        systemd-run(1), loginctl(1) enable-linger, user@.service(5).
    """
    if shutil.which(_SCOPE[0]) is None:
        return "systemd-run is not installed"
    user = str(os.getuid())
    with contextlib.suppress(KeyError):  # No such user in the password database.
        user = pwd.getpwuid(os.getuid()).pw_name
    if not (LINGERING / user).exists():
        return f"systemd ends scopes of {user} at logout (`loginctl enable-linger` changes that)"
    try:
        tried = subprocess.run(
            [*_SCOPE, "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SCOPE_TIMEOUT_S,
            check=False,
        )
    except OSError as error:
        return f"systemd-run cannot be run: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"systemd-run did not answer within {SCOPE_TIMEOUT_S:g} s"
    said = tried.stderr.strip().splitlines() or [f"systemd-run ended with code {tried.returncode}"]
    return said[-1] if tried.returncode else ""


def _start(socket_path: Path, argv: Sequence[str], deadline: float, timeout_s: float) -> None:
    with tempfile.TemporaryFile() as words:
        server = _spawn(argv, words)
        name = " ".join(argv)
        while not _listens(socket_path):
            code = server.poll()
            if code is not None and code != 0:
                raise PeerError(f"`{name}` ended with code {code}: {_last_words(words)}")
            if time.monotonic() > deadline:
                raise PeerError(
                    f"nothing listens on {socket_path} {timeout_s:g} s after `{name}` was "
                    f"started: {_last_words(words)}"
                )
            if code == 0:
                # Another server was there first: it is about to listen, or about to end.
                time.sleep(AGAIN_S)
                server = _spawn(argv, words)
            time.sleep(POLL_S)


def _spawn(argv: Sequence[str], words: IO[bytes]) -> subprocess.Popen[bytes]:
    _STARTED[:] = [server for server in _STARTED if server.poll() is None]
    server = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=words,
        stderr=words,
        # Whoever starts a server may run under a lease; the server does not belong to it.
        env={name: value for name, value in os.environ.items() if name != MARK},
        cwd="/",  # Not the notebook's folder: its files must not shadow modules, nor be kept busy.
        start_new_session=True,
    )
    _STARTED.append(server)
    return server


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _listens(socket_path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(socket_path))
        except OSError:
            return False
    return True


def _last_words(words: IO[bytes]) -> str:
    end = words.seek(0, os.SEEK_END)
    words.seek(max(0, end - _LAST_WORDS_BYTES))
    lines = words.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
