"""What a lease sets in a kernel's environment, and how that is undone."""

from __future__ import annotations

from workbench.client.environment import BEFORE, leased_environment, own_environment
from workbench.protocol.environment import MARK

GRANTED = {"CUDA_VISIBLE_DEVICES": "GPU-1", "OMP_NUM_THREADS": "2", MARK: "L1/job"}


def test_what_a_lease_sets_is_undone() -> None:
    own = {"HOME": "/home/ada", "OMP_NUM_THREADS": "6"}
    leased = {**own, **leased_environment(GRANTED, own)}
    assert {name: leased[name] for name in GRANTED} == GRANTED
    assert own_environment(leased) == own


def test_a_lease_inside_a_lease_is_undone_as_a_whole() -> None:
    own = {"OMP_NUM_THREADS": "6"}
    outer = {**own, **leased_environment(GRANTED, own)}
    inner = {**outer, **leased_environment({**GRANTED, "CUDA_VISIBLE_DEVICES": "GPU-2"}, outer)}
    assert own_environment(inner) == own


def test_an_environment_without_a_lease_stays_as_it_is() -> None:
    assert own_environment({"CUDA_VISIBLE_DEVICES": "0"}) == {"CUDA_VISIBLE_DEVICES": "0"}
    assert BEFORE not in own_environment({})
