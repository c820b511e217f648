from __future__ import annotations

import pytest

from workbench.devices.errors import BadSimulation, UnknownModel
from workbench.devices.simulated import SimulatedSource, Simulation
from workbench.protocol.telemetry import NotAvailable, Reading


def test_simulated_cards_are_labelled_and_invent_no_figures() -> None:
    reading = SimulatedSource(Simulation.parse("4xA100-SXM4-80GB"), hostname="lab1").read()
    assert reading.nvml is None
    assert len({device.uuid for device in reading.devices}) == 4
    for device in reading.devices:
        assert device.simulated
        assert device.uuid.startswith("SIM-")
        assert device.memory_total_bytes == Reading(80 * 2**30)
        assert device.util_pct == Reading(reason=NotAvailable.SIMULATED)
        assert device.memory_used_bytes == Reading(reason=NotAvailable.SIMULATED)


def test_uuids_are_the_same_at_every_start_and_differ_between_hosts() -> None:
    simulation = Simulation.parse("2xT4")
    here, again, there = (
        [d.uuid for d in SimulatedSource(simulation, hostname=h).read().devices]
        for h in ("a", "a", "b")
    )
    assert here == again
    assert not set(here) & set(there)


@pytest.mark.parametrize("text", ["", "A100", "x", "4x", "-1xT4", "4 A100-SXM4-80GB", "1.5xT4"])
def test_what_is_not_count_x_model_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadSimulation, match="4xA100-SXM4-80GB") as caught:
        Simulation.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["0xT4", "65xT4", f"{'9' * 5000}xT4"])
def test_a_count_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(BadSimulation, match="1 to 64"):
        Simulation.parse(text)


def test_an_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(UnknownModel, match=r"'A1000'.*A100-SXM4-80GB.*H200"):
        Simulation.parse("4xA1000")
