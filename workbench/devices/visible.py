"""What of the host's GPUs a process sees: how a child is shown its lease, and the check of that."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

SIMULATED_PREFIX = "SIM-"


def lease_environment(uuids: Sequence[str]) -> dict[str, str]:
    """The variables that show a child its leased GPUs and no others.

    UUIDs, since indexes depend on the order; the order is pinned all the same for programs that
    compare indexes. Without a GPU the list is empty (rather than -1, which Dask takes for an
    index), so that nothing takes one unasked.
    """
    return {"CUDA_VISIBLE_DEVICES": ",".join(uuids), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


class CheckOutcome(StrEnum):
    """Whether a child sees exactly the GPUs that it leased."""

    SAME = "same"
    DIFFERENT = "different"
    NOT_CHECKABLE = "not checkable"


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibilityCheck:
    """The outcome, the UUIDs that CUDA shows in its order, and a sentence for people."""

    outcome: CheckOutcome
    seen: tuple[str, ...] = ()
    message: str = ""


def check_visibility(leased: Sequence[str], *, library: str = "libcuda.so.1") -> VisibilityCheck:
    """Compare the GPUs that CUDA shows to this process with a lease, in the lease's order.

    Initialises CUDA in the calling process (without making a context): call it only in a worker
    or a child of its own, never in a kernel or a process that still forks.
    """
    if any(uuid.startswith(SIMULATED_PREFIX) for uuid in leased):
        return _not_checkable("the leased GPUs are simulated")
    try:
        cuda = ctypes.CDLL(library)
    except OSError:
        return _not_checkable(f"{library} is not on this machine")
    no_device = 100  # CUDA_ERROR_NO_DEVICE
    code = cuda.cuInit(0)
    if code not in {0, no_device}:
        return _not_checkable(f"cuInit answered with error {code}")
    seen = () if code == no_device else tuple(_device_uuid(cuda, n) for n in range(_count(cuda)))
    if [_digits(u) for u in seen] == [_digits(u) for u in leased]:
        return VisibilityCheck(outcome=CheckOutcome.SAME, seen=seen)
    return VisibilityCheck(
        outcome=CheckOutcome.DIFFERENT,
        seen=seen,
        message=f"leased {', '.join(leased) or 'no GPU'}, but CUDA shows"
        f" {', '.join(seen) or 'no GPU'}",
    )


def _not_checkable(why: str) -> VisibilityCheck:
    return VisibilityCheck(outcome=CheckOutcome.NOT_CHECKABLE, message=f"not checkable: {why}")


def _count(cuda: ctypes.CDLL) -> int:
    count = ctypes.c_int()
    return count.value if cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def _device_uuid(cuda: ctypes.CDLL, ordinal: int) -> str:
    device, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
    failed = cuda.cuDeviceGet(ctypes.byref(device), ordinal) or cuda.cuDeviceGetUuid_v2(raw, device)
    if failed:
        return "unknown"
    digits = bytes(raw).hex()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return f"GPU-{'-'.join(parts)}"


def _digits(uuid: str) -> str:
    """A UUID without its prefix: CUDA shows a MIG slice's bytes alike."""
    return uuid.removeprefix("GPU-").removeprefix("MIG-").lower()
