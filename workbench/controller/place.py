"""One controller per place: a lock held for life, on the socket's directory and on the state's."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from workbench.controller.errors import LabIsNamed, PlaceTaken
from workbench.transport.errors import BadPlace
from workbench.transport.paths import checked_socket_path, controller_place

LOCK: Final = "controller.lock"
SOCKET: Final = "controller.sock"
_GROUP_OR_OTHERS_MAY_WRITE: Final = 0o022


def own_socket() -> Path:
    """Return where this user's embedded controller listens.

    Raises:
        LabIsNamed: A lab's controller is configured; clients would never use an embedded one.
    """
    place = controller_place()
    if place.lab:
        raise LabIsNamed(
            f"no embedded controller is started: {place.named_by} names the lab's controller at "
            f"{place.socket}",
            next_step="Use the lab's, or unset WORKBENCH_CONTROLLER to work on your own",
        )
    return place.socket


def lab_socket(directory: Path) -> Path:
    """Return where a lab's controller listens, making its world-readable directory.

    Raises:
        BadPlace: The directory cannot be made, or others may replace the socket in it.
    """
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        status = directory.stat()
        if status.st_uid == os.getuid():
            directory.chmod(0o755)
            status = directory.stat()
    except OSError as error:
        raise BadPlace(
            f"{directory} cannot hold the lab's socket: {error.strerror}",
            next_step="Run as a user who may write there, or let systemd make it "
            "(RuntimeDirectory=gpu-workbench)",
        ) from error
    if status.st_uid not in {os.getuid(), 0} or status.st_mode & _GROUP_OR_OTHERS_MAY_WRITE:
        raise BadPlace(
            f"{directory} belongs to uid {status.st_uid} and has mode "
            f"{status.st_mode & 0o7777:04o}; only uid {os.getuid()} may write where the lab's "
            "socket is",
            next_step="Give --socket a directory of its own",
        )
    return checked_socket_path(directory / SOCKET)


@contextlib.contextmanager
def held(directory: Path) -> Iterator[None]:
    """Hold `directory` against every other controller until the block is left.

    The lock belongs to the open file, so the kernel drops it however this process ends.

    Raises:
        PlaceTaken: Another controller holds it; the message gives its pid.
        BadPlace: The lock file cannot be made.
    """
    path = directory / LOCK
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise BadPlace(
            f"{path} cannot be opened: {error.strerror}",
            next_step=f"Make {directory} writable for uid {os.getuid()}",
        ) from error
    with os.fdopen(descriptor, "r+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PlaceTaken(
                f"a controller already serves {directory}: pid {file.read().strip() or 'unknown'}",
                next_step="Use it, or stop it first with `workbench down`",
            ) from error
        file.seek(0)
        file.truncate()
        with contextlib.suppress(OSError):  # On a full disk the lock holds all the same.
            file.write(f"{os.getpid()}\n")
            file.flush()
        yield
