"""A real Jupyter server in a process of its own, with nothing of the user's."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.frontends.server.scenes import Scene
from tests.frontends.server.scripted_lab import tell
from workbench.protocol.messages import Failure, Status

ROOT = Path(__file__).parents[3]
TOKEN = "a-token-for-tests"
SCRIPTED = "tests.frontends.server.scripted_lab"
REAL = "workbench.frontends.server"


@dataclass(frozen=True, kw_only=True)
class LiveServer:
    """A running server.

    Attributes:
        origin: `http://127.0.0.1:PORT`, without a slash at the end.
        base_url: As the browser sees it: escaped, with slashes at both ends.
        script: What the scripted controller says.
        log: The server's log, for messages of failed tests.
    """

    origin: str
    base_url: str
    script: Path
    log: Path

    @property
    def port(self) -> int:
        return int(self.origin.rpartition(":")[2])

    def url(self, path: str) -> str:
        return f"{self.origin}{self.base_url}{path}"

    def show(self, scene: Scene | Status) -> None:
        tell(self.script, scene.status() if isinstance(scene, Scene) else scene)

    def fail(self, message: str, next_step: str) -> None:
        tell(
            self.script,
            Failure(fault="peer", error="PeerError", message=message, next_step=next_step),
        )


@contextmanager
def live_server(
    place: Path,
    *,
    command: str = "server",
    extension: str | None = SCRIPTED,
    base_url: str = "/",
    allow_unauthenticated: bool = False,
    arguments: tuple[str, ...] = (),
    environment: dict[str, str] | None = None,
) -> Iterator[LiveServer]:
    """Run a Jupyter server until the block ends.

    Args:
        place: Everything that it reads or writes lies here.
        command: `server` or `lab`.
        extension: The only extension beside JupyterLab; None for none.
        base_url: As Jupyter takes it.
        allow_unauthenticated: Jupyter's own default is True.
        arguments: Further ones of the command line.
        environment: Further variables.
    """
    script, log = place / "script.json", place / "server.log"
    tell(script, Scene().status())
    wanted = {
        REAL: False,
        "jupyterlab": command == "lab",
        **({extension: True} if extension else {}),
    }
    argv = [
        *(sys.executable, "-m", f"jupyter{'_server' if command == 'server' else 'lab'}"),
        *("--no-browser", "--allow-root", "--port=0", "--ip=127.0.0.1"),
        f"--ServerApp.base_url={base_url}",
        f"--ServerApp.jpserver_extensions={wanted!r}",
        f"--ServerApp.allow_unauthenticated_access={allow_unauthenticated}",
        f"--IdentityProvider.token={TOKEN}",
        *arguments,
    ]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            argv,
            cwd=place,
            env={**isolated(place), "SCRIPTED_LAB": str(script), **(environment or {})},
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        origin, path = address(process, place / "runtime", log)
        yield LiveServer(origin=origin, base_url=path, script=script, log=log)
    finally:
        process.terminate()
        process.wait(timeout=30)


def isolated(place: Path) -> dict[str, str]:
    """Return an environment in which Jupyter finds nothing of the user's."""
    folders = {
        "HOME": "home",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "XDG_RUNTIME_DIR": "xdg",
        "XDG_STATE_HOME": "state",
        "XDG_DATA_HOME": "share",
    }
    for folder in folders.values():
        (place / folder).mkdir(exist_ok=True, mode=0o700)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")},
        **{name: str(place / folder) for name, folder in folders.items()},
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }


def address(process: subprocess.Popen[bytes], runtime: Path, log: Path) -> tuple[str, str]:
    """Wait until the server listens where its own file says; return its origin and base URL."""
    while process.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            if (text := file.read_text()).endswith("}"):
                info = json.loads(text)
                with suppress(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", info["port"])).close()
                    return f"http://127.0.0.1:{info['port']}", info["base_url"]
        time.sleep(0.02)
    raise AssertionError(f"the Jupyter server ended at once:\n{log.read_text()}")
