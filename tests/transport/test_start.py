"""A server that is wanted is started once, and says why where it cannot."""

from __future__ import annotations

import fcntl
import os
import pwd
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.core.errors import PeerError
from workbench.transport import start as starting
from workbench.transport.errors import BadPlace
from workbench.transport.start import ensure_running, why_no_scope

SERVER = """
import os, socket, sys, time
path, log = sys.argv[1:]
time.sleep(0.1)
with open(log, "a") as file: file.write(f"{os.getpid()} {os.getsid(0)} {os.getcwd()}\\n")
server = socket.socket(socket.AF_UNIX)
server.bind(path); server.listen()
time.sleep(60)
"""


Place = tuple[Path, Path, Path]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Paths for a socket, a lock and a log; whoever wrote the log is ended."""
    log = tmp_path / "log"
    yield tmp_path / "s", tmp_path / "s.start", log
    for line in log.read_text().splitlines() if log.exists() else ():
        os.kill(int(line.split()[0]), signal.SIGKILL)


def server(place: Place, source: str = SERVER) -> list[str]:
    socket_path, _, log = place
    return [sys.executable, "-c", source, str(socket_path), str(log)]


def start(place: Place, source: str = SERVER, timeout_s: float = 20) -> None:
    ensure_running(place[0], place[1], server(place, source), timeout_s=timeout_s)


def test_of_many_askers_one_starts_the_server_and_all_find_it(place: Place) -> None:
    threads = [threading.Thread(target=start, args=(place,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    start(place)
    (line,) = place[2].read_text().splitlines()
    pid, session, folder = line.split()
    assert (session, folder) == (pid, "/")


def test_a_server_that_ends_at_once_is_quoted(place: Place) -> None:
    with pytest.raises(PeerError, match=r"code 1.*the port is taken"):
        start(place, "import sys; print('first'); sys.exit('the port is taken')")


def test_a_server_that_yields_to_another_is_started_again_when_that_has_gone(place: Place) -> None:
    counting = f"""
import os, sys
if not os.path.exists(sys.argv[2] + ".tried"):
    open(sys.argv[2] + ".tried", "w").close()
    sys.exit(0)
{SERVER}"""
    start(place, counting)
    assert len(place[2].read_text().splitlines()) == 1


@pytest.fixture
def scopes(place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in `systemd-run`, to be written, and a user who lingers."""
    folder = place[0].parent
    (folder / "linger").mkdir()
    (folder / "linger" / pwd.getpwuid(os.getuid()).pw_name).touch()
    monkeypatch.setattr(starting, "LINGERING", folder / "linger")
    monkeypatch.setattr(starting, "SCOPE_TIMEOUT_S", 0.5)
    (folder / "bin").mkdir()
    monkeypatch.setenv("PATH", str(folder / "bin"), prepend=os.pathsep)
    return folder / "bin" / "systemd-run"


def put(program: Path, lines: str) -> None:
    program.write_text(f"#!/bin/sh\n{lines}\n")
    program.chmod(0o755)


def start_in_scope(place: Place) -> None:
    ensure_running(place[0], place[1], server(place), timeout_s=20, in_own_scope=True)


def test_a_server_is_put_into_a_scope_where_that_works(scopes: Path, place: Place) -> None:
    put(scopes, f'echo "$$ $*" >> {scopes}.log; shift 5; exec "$@"')
    start_in_scope(place)
    tried, started = Path(f"{scopes}.log").read_text().splitlines()[:2]
    assert tried.endswith(" --user --scope --quiet --collect -- true")
    (line,) = place[2].read_text().splitlines()
    pid, session, folder = line.split()
    assert (started.split()[0], session, folder) == (pid, pid, "/")
    assert why_no_scope() == ""


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("echo Failed to connect to bus >&2; exit 1", "Failed to connect to bus"),
        ("exit 3", "ended with code 3"),
        ("exec sleep 60", "did not answer within 0.5 s"),
    ],
)
def test_a_server_is_started_plainly_where_no_scope_can_be_made(
    scopes: Path, place: Place, lines: str, why: str
) -> None:
    put(scopes, lines)
    assert why in why_no_scope()
    start_in_scope(place)
    assert len(place[2].read_text().splitlines()) == 1


def test_no_scope_is_used_that_ends_when_its_user_logs_out(scopes: Path, place: Place) -> None:
    put(scopes, f'touch {scopes}.ran; shift 5; exec "$@"')
    next(starting.LINGERING.iterdir()).unlink()
    assert "enable-linger" in why_no_scope()
    start_in_scope(place)
    assert not Path(f"{scopes}.ran").exists()


def test_a_host_without_systemd_has_no_scopes(
    scopes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(scopes.parent))
    assert why_no_scope() == "systemd-run is not installed"


def test_a_server_that_never_listens_is_given_up(place: Place) -> None:
    silent = (
        "import os, sys, time; open(sys.argv[2], 'w').write(f'{os.getpid()}\\n'); time.sleep(60)"
    )
    with pytest.raises(PeerError, match="nothing listens"):
        start(place, silent, timeout_s=0.5)


def test_a_starter_that_hangs_is_not_waited_for_for_ever(place: Place) -> None:
    with Path(place[1]).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(PeerError, match="another process has been starting"):
            start(place, timeout_s=0.2)


def test_a_place_where_no_lock_can_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadPlace, match="nowhere"):
        ensure_running(tmp_path / "s", tmp_path / "nowhere" / "s.start", ["true"], timeout_s=1)
