from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from workbench.core.errors import PeerError
from workbench.transport.errors import BadPlace
from workbench.transport.start import _STARTED, ensure_running

SERVER = """
import os, pathlib, socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
with open(sys.argv[1] + ".starts", "a") as file:
    file.write(f"{os.getpid()} {os.getsid(0)} {os.getcwd()}\\n")
server.listen(8)
while True:
    server.accept()[0].close()
"""


@pytest.fixture
def socket() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="wb-") as directory:
        yield Path(directory) / "one.sock"
        for server in _STARTED:
            server.kill()
            server.wait()
        _STARTED.clear()


def argv(socket: Path, program: str = SERVER) -> list[str]:
    return [sys.executable, "-c", program, str(socket)]


def starts(socket: Path) -> list[list[str]]:
    return [line.split() for line in Path(f"{socket}.starts").read_text().splitlines()]


def start(socket: Path, program: str = SERVER, *, timeout_s: float = 20.0) -> None:
    ensure_running(socket, socket.with_suffix(".start"), argv(socket, program), timeout_s=timeout_s)


def test_a_server_is_started_once_in_a_session_of_its_own(socket: Path) -> None:
    start(socket)
    start(socket)
    [[pid, session, directory]] = starts(socket)
    assert pid == session
    assert directory == "/"
    assert psutil.pid_exists(int(pid))


async def test_however_many_ask_one_server_is_started(socket: Path) -> None:
    await asyncio.gather(*(asyncio.to_thread(start, socket) for _ in range(8)))
    assert len(starts(socket)) == 1


def test_a_server_that_ends_says_why(socket: Path) -> None:
    with pytest.raises(PeerError, match="no place for it"):
        start(socket, "import sys; print('first'); sys.exit('no place for it')")


def test_a_server_that_does_not_listen_in_time_is_said(socket: Path) -> None:
    with pytest.raises(PeerError, match="nothing listens"):
        start(socket, "import time; time.sleep(60)", timeout_s=0.2)


def test_a_lock_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadPlace, match="cannot be opened"):
        start(tmp_path / "missing/one.sock")
