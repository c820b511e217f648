"""Where sockets, state and jobs live.

    runtime   $XDG_RUNTIME_DIR/gpu-workbench, else gpu-workbench-UID in the temp dir: sockets, locks
    state     $XDG_STATE_HOME (~/.local/state)/gpu-workbench: journal, logs
    data      $XDG_DATA_HOME (~/.local/share)/gpu-workbench/jobs: job directories
    lab       $WORKBENCH_CONTROLLER, or `controller` in the configuration file

Sockets live apart from state: state may be on a network home, sockets may not.
"""

from __future__ import annotations

import os
import stat
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workbench.transport.errors import BadPlace

SOCKET_PATH_LIMIT: Final = 100
"""Bytes. The kernel's own limit is 107 (sun_path, unix(7)); the rest is for lock suffixes."""

CONFIGURATION: Final = Path("/etc/gpu-workbench/config.toml")


def private_directory(path: Path) -> Path:
    """Make `path` with mode 0700 where it is missing and return it.

    Raises:
        BadPlace: It is not a directory, belongs to someone else, or cannot be made; the message
            names the path, the rule and what to set instead.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise BadPlace(
            f"{path} cannot be used as a private directory: {error.strerror}",
            next_step="Make it writable, or set XDG_RUNTIME_DIR, XDG_STATE_HOME or XDG_DATA_HOME",
        ) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise BadPlace(
            f"{path} must be a directory of uid {os.getuid()}, but it belongs to uid "
            f"{status.st_uid}",
            next_step="Remove it, or set XDG_RUNTIME_DIR to a directory of yours",
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        path.chmod(0o700)
    if not os.access(path, os.W_OK | os.X_OK):
        raise BadPlace(
            f"{path} is not writable for uid {os.getuid()}",
            next_step=f"Run chmod u+rwx {path}, or set XDG_STATE_HOME to another directory",
        )
    return path


def runtime_directory() -> Path:
    """Return this user's directory for sockets and locks, made where missing."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base:
        return private_directory(Path(base) / "gpu-workbench")
    return private_directory(Path(tempfile.gettempdir()) / f"gpu-workbench-{os.getuid()}")


def state_directory() -> Path:
    """Return this user's directory for journal and logs, made where missing."""
    base = os.environ.get("XDG_STATE_HOME")
    return private_directory(
        (Path(base) if base else Path.home() / ".local/state") / "gpu-workbench"
    )


def jobs_directory() -> Path:
    """Return the directory that holds this user's job directories, made where missing."""
    base = os.environ.get("XDG_DATA_HOME")
    data = (Path(base) if base else Path.home() / ".local/share") / "gpu-workbench"
    return private_directory(private_directory(data) / "jobs")


def checked_socket_path(path: Path) -> Path:
    """Return `path` where it is short enough for a Unix socket.

    Raises:
        BadPlace: It has more than `SOCKET_PATH_LIMIT` bytes.
    """
    length = len(os.fsencode(path))
    if length > SOCKET_PATH_LIMIT:
        raise BadPlace(
            f"the socket path {path} has {length} bytes, the limit is {SOCKET_PATH_LIMIT}",
            next_step="Set XDG_RUNTIME_DIR to a shorter directory, for example /run/user/$(id -u)",
        )
    return path


def agent_socket() -> Path:
    """Return where this user's agent listens."""
    return checked_socket_path(runtime_directory() / "agent.sock")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerPlace:
    """Which controller this user belongs to.

    Attributes:
        socket: Where it listens.
        lab: True where a configuration file or variable names it; then nobody starts another.
        trusted_uids: Who may serve it.
        named_by: What named it, for messages.
    """

    socket: Path
    lab: bool
    trusted_uids: tuple[int, ...]
    named_by: str


def controller_place(configuration: Path = CONFIGURATION) -> ControllerPlace:
    """Return the controller of this user: the lab's where one is named, else the user's own.

    Args:
        configuration: TOML with `controller` (a directory) and optionally `controller_uid`.

    Raises:
        BadPlace: The configuration cannot be read, or the socket path is too long.
    """
    own = (os.getuid(), 0)
    named = os.environ.get("WORKBENCH_CONTROLLER")
    if named:
        socket = checked_socket_path(Path(named) / "controller.sock")
        return ControllerPlace(
            socket=socket,
            lab=True,
            trusted_uids=_lab_uids(own, configuration),
            named_by="WORKBENCH_CONTROLLER",
        )
    settings = _settings(configuration)
    if "controller" in settings:
        socket = checked_socket_path(Path(str(settings["controller"])) / "controller.sock")
        return ControllerPlace(
            socket=socket,
            lab=True,
            trusted_uids=_lab_uids(own, configuration),
            named_by=str(configuration),
        )
    socket = checked_socket_path(runtime_directory() / "controller.sock")
    return ControllerPlace(socket=socket, lab=False, trusted_uids=own, named_by="your own")


def _lab_uids(own: tuple[int, ...], configuration: Path) -> tuple[int, ...]:
    uid = _settings(configuration).get("controller_uid")
    return (*own, uid) if isinstance(uid, int) else own


def _settings(configuration: Path) -> dict[str, object]:
    try:
        return tomllib.loads(configuration.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # not TOML, or not even text
        raise BadPlace(
            f"{configuration} cannot be read: {error}",
            next_step="Ask whoever keeps this host to mend it",
        ) from error
