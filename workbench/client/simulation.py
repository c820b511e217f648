"""Simulated GPUs, as a front-end asks for them."""

from __future__ import annotations

from workbench.devices.simulated import Simulation


def check_simulation(text: str) -> None:
    """Refuse a text that names no GPUs to simulate, before anything is started for it.

    Raises:
        UserError: It is not of the form `4xA100-SXM4-80GB`, or there is no such model.
    """
    Simulation.parse(text)
