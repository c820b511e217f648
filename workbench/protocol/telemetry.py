"""What is measured, on the wire: one `Sample` a tick for the host and all its devices.

Memory is in bytes, use in per cent of the whole device (0 to 100), ages in seconds. A figure that
could not be read is a `Reading` without a value and with the reason, never a zero.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class NotAvailable(StrEnum):
    """Why a figure is missing. The values are short enough to be shown as they are."""

    FIRST_SAMPLE = "first sample"
    FUNCTION_NOT_FOUND = "this driver has no such query"
    IMPLAUSIBLE = "the driver reported implausible rows"
    LOST = "device lost"
    MISSING = "device missing"
    NOT_READ = "not read yet"
    NOT_SUPPORTED = "not supported by this device or driver"
    NO_PERMISSION = "no permission"
    NO_SUCH_PROCESS = "no such process here"
    OTHER_NAMESPACE = "process outside this container"
    SIMULATED = "simulated"
    UNIFIED_MEMORY = "shares the host's memory"
    UNKNOWN_ERROR = "the driver answered with an unknown error"


class Reading(Struct, frozen=True):
    """One figure, or the reason why there is none. Exactly one of the two is set."""

    value: int | float | None = None
    reason: NotAvailable | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            msg = f"a reading has either a value or a reason, not {self.value!r} and {self.reason}"
            raise ValueError(msg)


class SampleStatus(StrEnum):
    """How far a device's figures can be trusted.

    Attributes:
        OK: Read just now.
        STALE: True `stale_age_s` seconds ago, and could not be read since.
        LOST: The driver says that the card has fallen off the bus.
        UNREADABLE: The card is there, but the driver refuses to speak about it.
        MISSING: Seen earlier, and no longer listed by the driver.
    """

    OK = "ok"
    STALE = "stale"
    LOST = "lost"
    UNREADABLE = "unreadable"
    MISSING = "missing"


class ProcessSample(Struct, frozen=True, kw_only=True):
    """A process that holds memory on a device.

    Attributes:
        pid: As NVML reports it; in a container this may be another namespace's number.
        used_bytes: Device memory it holds.
        owner_uid: Who runs it. Only given where the pid is one of this PID namespace.
    """

    pid: int
    used_bytes: Reading
    owner_uid: Reading


class DeviceSample(Struct, frozen=True, kw_only=True):
    """One device at one moment.

    Attributes:
        uuid: The key. `GPU-…` or `MIG-…` as NVML spells it, `SIM-…` where simulated, `unknown:N`
            for the Nth card where it was lost before its UUID could be read.
        index: Position in NVML's order at this moment; for display only.
        name: The model; "unknown" where it could not be read.
        parent_uuid: The GPU of which this is a MIG slice.
        processes_reason: Why `processes` may be incomplete; None where it is complete.
        mig_enabled: The GPU is split into slices and must never be handed out whole.
        unified_memory: The device has no memory of its own and uses the host's.
        stale_age_s: How long ago the figures were read; None unless `status` is stale.
    """

    uuid: str
    index: int | None
    name: str
    parent_uuid: str | None = None
    status: SampleStatus = SampleStatus.OK
    simulated: bool = False
    mig_enabled: bool = False
    unified_memory: bool = False
    memory_total_bytes: Reading
    memory_used_bytes: Reading
    util_pct: Reading
    processes: tuple[ProcessSample, ...] = ()
    processes_reason: NotAvailable | None = None
    stale_age_s: float | None = None


class HostSample(Struct, frozen=True, kw_only=True):
    """The host's processor and memory at one moment.

    Attributes:
        cpu_util_pct: Of all the host's cores.
        cores_usable: Cores that this process may use, after affinity and control groups; a
            fraction where a quota says so.
        cores_total: Cores that the host has.
        memory_total_bytes: Host memory that may be used, after control groups.
    """

    hostname: str
    cpu_util_pct: Reading
    cores_usable: Reading
    cores_total: Reading
    memory_total_bytes: Reading
    memory_available_bytes: Reading


class NvmlStatus(StrEnum):
    """Whether NVML, NVIDIA's monitoring library, can be read."""

    OK = "ok"
    NOT_IN_USE = "not in use"
    NOT_READ = "not read yet"
    NO_BINDING = "no binding"
    NO_LIBRARY = "no library"
    DRIVER_NOT_LOADED = "driver not loaded"
    VERSION_MISMATCH = "version mismatch"
    NO_PERMISSION = "no permission"
    UNKNOWN = "unknown"
    NOT_ANSWERING = "not answering"


class NvmlState(Struct, frozen=True, kw_only=True):
    """The state of NVML and what a person can do about it; empty texts where nothing is amiss."""

    state: NvmlStatus
    message: str = ""
    next_step: str = ""


class Sample(Struct, frozen=True, kw_only=True):
    """Host and devices at one moment. The order of `devices` never changes while a server runs."""

    at_unix_s: float
    host: HostSample
    devices: tuple[DeviceSample, ...]
    nvml: NvmlState
