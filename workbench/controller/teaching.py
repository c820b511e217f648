"""Remembers that a lab is simulated, while it may be started again for its jobs or by a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from workbench.devices.simulated import Simulation

_FILE: Final = "simulated"


def settle(state: Path, asked: Simulation | None) -> Simulation | None:
    """Return the GPUs to simulate: those asked for now, else those of the controller before.

    Args:
        state: The state directory; the caller holds its lock.
        asked: What the command line says; None where it says nothing.
    """
    file = state / _FILE
    if asked is not None:
        file.write_text(str(asked), encoding="utf-8")
        return asked
    try:
        return Simulation.parse(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def forget(state: Path) -> None:
    """Have the next controller show the host's own devices: nobody needs the simulated ones."""
    (state / _FILE).unlink(missing_ok=True)
