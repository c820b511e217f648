"""CUDA_VISIBLE_DEVICES by CUDA's own rules, and the check that a child sees what it leased.

Source: CUDA C++ Programming Guide, "CUDA Environment Variables". Rules: unset means all; the empty
list and -1 mean none; the first entry that names no device ends the list; a device named twice
empties it; indexes and UUIDs do not mix, the first entry decides; a UUID may be shortened as long
as it stays unique; a process sees at most one MIG slice.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

UUID_PREFIXES = ("GPU-", "MIG-")
SIMULATED_PREFIX = "SIM-"


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleDevices:
    """What CUDA makes of a value.

    Attributes:
        uuids: The devices that a process sees, in the order in which it numbers them.
        problem: What in the value has another effect than its writer may think; None where nothing.
    """

    uuids: tuple[str, ...]
    problem: str | None = None


def visible_devices(value: str | None, uuids: Sequence[str]) -> VisibleDevices:
    """Apply a value of CUDA_VISIBLE_DEVICES.

    Args:
        value: None where the variable is not set.
        uuids: The host's devices in CUDA's order (see `lease_environment`), MIG slices after all
            whole GPUs; slices have no index.
    """
    wholes = [u for u in uuids if not u.startswith("MIG-")]
    if value is None:
        return VisibleDevices(uuids=tuple(wholes))
    if value.strip() in {"", "-1"}:
        return VisibleDevices(uuids=())
    seen: list[str] = []
    by_uuid = value.startswith(UUID_PREFIXES)
    for entry in value.split(","):
        found = _by_uuid(entry, uuids) if by_uuid else _by_index(entry, wholes)
        if isinstance(found, _Nothing):
            return VisibleDevices(uuids=tuple(seen), problem=_ending(value, entry, found.why, seen))
        if found in seen:
            return VisibleDevices(
                uuids=(),
                problem=f"CUDA_VISIBLE_DEVICES={value!r} names {found} twice: CUDA then shows none",
            )
        seen.append(found)
        if found.startswith("MIG-"):
            rest = entry != value
            return VisibleDevices(
                uuids=tuple(seen),
                problem=f"CUDA_VISIBLE_DEVICES={value!r}: CUDA shows one MIG slice to a process"
                if rest
                else None,
            )
    return VisibleDevices(uuids=tuple(seen))


@dataclass(frozen=True, slots=True)
class _Nothing:
    """An entry that names no device, and why."""

    why: str


def _by_index(entry: str, uuids: Sequence[str]) -> str | _Nothing:
    # Like C's strtol, CUDA reads as far as there are digits: "1x" is 1.
    match = re.match(r"\s*[+-]?\d+", entry)
    if match is None:
        if entry.strip().startswith(UUID_PREFIXES):
            return _Nothing("a UUID after an index is not read")
        return _Nothing("it is neither an index nor a UUID")
    index = int(match[0])
    if 0 <= index < len(uuids):
        return uuids[index]
    return _Nothing("a negative index" if index < 0 else f"there are {len(uuids)} GPUs, from 0 on")


def _by_uuid(entry: str, uuids: Sequence[str]) -> str | _Nothing:
    if not entry.startswith(UUID_PREFIXES):
        return _Nothing("an index after a UUID is not read")
    matches = [u for u in uuids if u.startswith(entry)]
    if len(matches) == 1:
        return matches[0]
    return _Nothing("it fits several devices" if matches else "there is no such device")


def _ending(value: str, entry: str, why: str, seen: Sequence[str]) -> str:
    shown = f"only {len(seen)} device(s) before it" if seen else "none"
    return f"CUDA_VISIBLE_DEVICES={value!r} ends at {entry!r} ({why}): CUDA shows {shown}"


def lease_environment(uuids: Sequence[str]) -> dict[str, str]:
    """The variables that show a child its leased GPUs and no others.

    UUIDs, since indexes depend on the order; the order is pinned all the same for programs that
    compare indexes. Without a GPU, or with simulated ones, the list is empty (rather than -1,
    which Dask takes for an index).
    """
    real = [u for u in uuids if not u.startswith(SIMULATED_PREFIX)]
    return {"CUDA_VISIBLE_DEVICES": ",".join(real), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


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
