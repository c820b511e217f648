"""What CUDA shows a process: the stand-in reads CUDA_VISIBLE_DEVICES as torch does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import msgspec
import pytest

from tests.stand_ins.world import GIB, StubWorld
from workbench.devices.visible import (
    CheckOutcome,
    VisibilityCheck,
    check_visibility,
    lease_environment,
)

UUIDS = (
    "GPU-9b000000-0000-0000-0000-000000000000",
    "GPU-9c000000-0000-0000-0000-000000000001",
    "GPU-aa000000-0000-0000-0000-000000000002",
)
A, B, C = UUIDS

CASES: list[tuple[str | None, tuple[str, ...]]] = [
    (None, UUIDS),
    ("", ()),
    ("-1", ()),
    ("0", (A,)),
    ("2,0", (C, A)),
    ("0,,1", (A,)),
    (" 0", (A,)),
    ("0,0", ()),
    ("0,7,1", (A,)),
    ("0,-1,1", (A,)),
    ("1gpu", (B,)),
    (A, (A,)),
    (f"{C},{A}", (C, A)),
    (f"{C},{C}", ()),
    ("GPU-9b", (A,)),
    ("GPU-9", ()),
    ("GPU-p", ()),
    ("0,GPU-p", (A,)),
    (f"0,{B}", (A,)),
    (f"{B},0", (B,)),
    ("NoDevFiles", ()),
    ("all", ()),
    ("MIG-a", ()),
]


READ_BY_TORCH = """
import json, os, sys
from torch.cuda import _parse_visible_devices, _transform_uuid_to_ordinals
values, uuids = json.load(sys.stdin)
shown = []
for os.environ["CUDA_VISIBLE_DEVICES"] in values:
    entries = _parse_visible_devices()
    if entries and isinstance(entries[0], str):
        entries = _transform_uuid_to_ordinals(entries, uuids)
    known = [n < len(uuids) for n in entries] + [False]
    shown.append([uuids[n] for n in entries[: known.index(False)]])
json.dump(shown, sys.stdout)
"""


def test_torch_reads_every_case_alike() -> None:
    """Case 24, dask-cuda#435."""
    pytest.importorskip("torch", reason="without torch there is no other parser to compare with")
    expected = {value: uuids for value, uuids in CASES if value is not None}
    run = subprocess.run(
        [sys.executable, "-c", READ_BY_TORCH],
        input=msgspec.json.encode([list(expected), UUIDS]),
        capture_output=True,
        check=True,
    )
    shown = msgspec.json.decode(run.stdout, type=list[tuple[str, ...]])
    assert dict(zip(expected, shown, strict=True)) == expected


CHECK = """
import sys, msgspec
from workbench.devices.visible import check_visibility
sys.stdout.buffer.write(msgspec.json.encode(check_visibility(sys.argv[1:])))
"""


def check_in_child(
    world: StubWorld, leased: Sequence[str], variables: dict[str, str]
) -> VisibilityCheck:
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    run = subprocess.run(
        [sys.executable, "-c", CHECK, *leased],
        env=env | world.env | variables,
        capture_output=True,
        check=True,
    )
    return msgspec.json.decode(run.stdout, type=VisibilityCheck)


@pytest.mark.parametrize(("value", "expected"), CASES)
def test_the_stand_in_for_cuda_shows_every_case_alike(
    nvml_stub: StubWorld, value: str | None, expected: tuple[str, ...]
) -> None:
    nvml_stub.gpus(3)
    for card, uuid in zip(nvml_stub.cards, UUIDS, strict=True):
        card.uuid = uuid
    nvml_stub.write()
    variables = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    check = check_in_child(nvml_stub, expected, variables)
    assert check == VisibilityCheck(outcome=CheckOutcome.SAME, seen=expected)


def test_a_lease_shows_its_own_card_although_cuda_numbers_the_fastest_first(
    nvml_stub: StubWorld,
) -> None:
    """Case 23, gpustack#1633: NVML lists small, big; CUDA lists big, small."""
    small, big = nvml_stub.gpus(2)
    nvml_stub.set(small, memory_bytes=16 * GIB, speed=1)
    nvml_stub.set(big, speed=9)
    nvml_stub.fastest_first = True
    nvml_stub.write()
    variables = lease_environment([small])
    assert variables == {"CUDA_VISIBLE_DEVICES": small, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert check_in_child(nvml_stub, [small], variables).outcome is CheckOutcome.SAME
    wrong = check_in_child(nvml_stub, [small], {"CUDA_VISIBLE_DEVICES": "0"})
    assert wrong == VisibilityCheck(
        outcome=CheckOutcome.DIFFERENT,
        seen=(big,),
        message=f"leased {small}, but CUDA shows {big}",
    )


def test_a_lease_without_a_gpu_shows_none(nvml_stub: StubWorld) -> None:
    nvml_stub.gpus(2)
    check = check_in_child(nvml_stub, [], lease_environment([]))
    assert check == VisibilityCheck(outcome=CheckOutcome.SAME)


def test_a_simulated_lease_cannot_be_checked(nvml_stub: StubWorld) -> None:
    nvml_stub.gpus(1)
    check = check_in_child(nvml_stub, ["SIM-1"], lease_environment([]))
    assert check.outcome is CheckOutcome.NOT_CHECKABLE


def test_without_cuda_the_check_says_that_it_cannot() -> None:
    check = check_visibility([A], library="libno-such-cuda.so.1")
    assert check.outcome is CheckOutcome.NOT_CHECKABLE
    assert "libno-such-cuda.so.1" in check.message


def test_a_driver_that_fails_is_not_taken_for_a_wrong_card(nvml_stub: StubWorld) -> None:
    (uuid,) = nvml_stub.gpus(1)
    nvml_stub.fail("cuInit", 803)
    check = check_in_child(nvml_stub, [uuid], lease_environment([uuid]))
    assert check.outcome is CheckOutcome.NOT_CHECKABLE
    assert "803" in check.message
