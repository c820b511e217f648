"""The server half with the real client and the user's own, embedded controller."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.frontends.server.live_server import REAL, LiveServer, live_server
from tests.frontends.server.test_routes import AUTHORIZED, ask


def controller_pid(server: LiveServer) -> int:
    """Ask until the controller answers."""
    for _ in range(200):
        code, said = ask(server, "gpu-workbench/api/status", headers=AUTHORIZED)
        if code == HTTPStatus.OK:
            assert said["controller"]["mode"] == "embedded"
            return int(said["controller"]["pid"])
        assert code == HTTPStatus.SERVICE_UNAVAILABLE
        time.sleep(0.1)
    pytest.fail(f"no controller answers: {said}")


def test_the_users_own_controller_is_started_by_the_first_page_and_again_after_it_died() -> None:
    started: list[int] = []
    # Not pytest's folder: a socket's path has at most 100 bytes.
    with (
        tempfile.TemporaryDirectory(prefix="wb") as place,
        live_server(Path(place), extension=REAL) as server,
    ):
        try:
            started.append(controller_pid(server))
            end(started[0], signal.SIGKILL)
            while controller_pid(server) == started[0]:
                time.sleep(0.02)  # the server half has not noticed yet
            started.append(controller_pid(server))
        finally:
            end(started[-1], signal.SIGTERM)


def end(pid: int, how: signal.Signals) -> None:
    """Send a signal and wait until the process is gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, how)
    while Path(f"/proc/{pid}/exe").exists():
        time.sleep(0.02)
