"""Typed access to NVML through nvidia-ml-py. The only importer of `pynvml`.

Nothing here keeps state between readings; `nvml_source.py` does. All calls must come from one
thread, so that shutting down never races a query.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from types import ModuleType
from typing import Any

from workbench.devices.errors import NvmlUnavailable, QueryFailed
from workbench.devices.processes import ProcessTable, read_process_table
from workbench.protocol.telemetry import (
    DeviceSample,
    NotAvailable,
    NvmlState,
    NvmlStatus,
    Reading,
    SampleStatus,
)

log = logging.getLogger(__name__)

UNIFIED_MEMORY_NAMES = ("GB10", "Jetson", "Orin", "Thor", "Xavier", "Tegra")
"""Parts of the names of devices that are known to have no memory of their own. Another device that
cannot tell its memory is a discrete card with a fault, not one of these."""


class Code(IntEnum):
    """NVML's results that mean something to us. Source: nvmlReturn_t."""

    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    DRIVER_NOT_LOADED = 9
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    LIB_RM_VERSION_MISMATCH = 18
    UNKNOWN = 999


_QUERY_REASONS: dict[int, NotAvailable] = {
    Code.NOT_SUPPORTED: NotAvailable.NOT_SUPPORTED,
    Code.NO_PERMISSION: NotAvailable.NO_PERMISSION,
    Code.FUNCTION_NOT_FOUND: NotAvailable.FUNCTION_NOT_FOUND,
    Code.INVALID_ARGUMENT: NotAvailable.FUNCTION_NOT_FOUND,  # an older struct version
    Code.NOT_FOUND: NotAvailable.MISSING,
    Code.GPU_IS_LOST: NotAvailable.LOST,
    Code.RESET_REQUIRED: NotAvailable.LOST,
}

_LIBRARY_STATUSES: dict[int, NvmlStatus] = {
    Code.LIBRARY_NOT_FOUND: NvmlStatus.NO_LIBRARY,
    Code.DRIVER_NOT_LOADED: NvmlStatus.DRIVER_NOT_LOADED,
    Code.LIB_RM_VERSION_MISMATCH: NvmlStatus.VERSION_MISMATCH,
    Code.UNINITIALIZED: NvmlStatus.UNKNOWN,
}
"""Codes that speak of the library and the driver, whichever function answers them."""

_ADVICE = {
    NvmlStatus.NO_BINDING: (
        "the Python package nvidia-ml-py is not installed, so GPUs cannot be read",
        "Run `pip install nvidia-ml-py` in the environment of the controller",
    ),
    NvmlStatus.NO_LIBRARY: (
        "no NVIDIA driver on this machine (libnvidia-ml.so.1 was not found)",
        "Install the driver if there is a GPU; start a container with the NVIDIA runtime",
    ),
    NvmlStatus.DRIVER_NOT_LOADED: (
        "the NVIDIA driver is installed but not loaded",
        "Run `sudo modprobe nvidia`; after a kernel upgrade reinstall the driver or reboot",
    ),
    NvmlStatus.VERSION_MISMATCH: (
        "driver mismatch, reboot needed: the driver was upgraded while the old one is still loaded",
        "Reboot when the running jobs have ended: they go on, but no new GPU job starts before",
    ),
    NvmlStatus.NO_PERMISSION: (
        "no permission to talk to the NVIDIA driver",
        "Ask the administrator for read and write access to /dev/nvidiactl and /dev/nvidia*",
    ),
    NvmlStatus.UNKNOWN: (
        "the NVIDIA driver failed",
        "Look for NVRM or Xid in `sudo dmesg`; reloading the driver or a reboot usually helps",
    ),
}


def _library_failure(status: NvmlStatus, code: int | None = None) -> NvmlUnavailable:
    message, next_step = _ADVICE[status]
    if status is NvmlStatus.UNKNOWN and code is not None:
        message = f"{message} (NVML error {code})"
    return NvmlUnavailable(NvmlState(state=status, message=message, next_step=next_step))


_UNSHADOW = "Run `pip uninstall pynvml && pip install --force-reinstall nvidia-ml-py`"


@functools.cache
def _shadow_notice(path: str) -> str:
    """Say once in the log, and for every reader of the state, that an old binding is in the way."""
    notice = (
        f"the module `pynvml` comes from an outdated package ({path}) that hides nvidia-ml-py;"
        " some figures may be missing"
    )
    log.warning("%s. %s", notice, _UNSHADOW)
    return notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One position in NVML's list.

    Attributes:
        index: The position.
        samples: The GPU and then its MIG slices; empty where not even its UUID could be read.
        reason: Why it could not.
    """

    index: int
    samples: tuple[DeviceSample, ...] = ()
    reason: NotAvailable | None = None


class Nvml:
    """An initialised NVML. Make one with `open`."""

    def __init__(self, binding: ModuleType) -> None:
        self._binding = binding

    @classmethod
    def open(cls) -> Nvml:
        """Load and initialise NVML.

        Raises:
            NvmlUnavailable: It cannot be used; try again later.
        """
        try:
            import pynvml
        except ImportError:
            raise _library_failure(NvmlStatus.NO_BINDING) from None
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            code = int(error.value)
            if code == Code.NO_PERMISSION:
                raise _library_failure(NvmlStatus.NO_PERMISSION) from None
            status = _LIBRARY_STATUSES.get(code, NvmlStatus.UNKNOWN)
            raise _library_failure(status, code) from None
        return cls(pynvml)

    def close(self) -> None:
        """Shut NVML down; a library that has failed already is left as it is."""
        try:
            self._binding.nvmlShutdown()
        except self._binding.NVMLError as error:
            log.debug("NVML did not shut down: %s", error)

    @property
    def state(self) -> NvmlState:
        """Of an NVML that works: nothing to say, unless an old binding is in the way."""
        # nvidia-ml-py is one module; the packages before it that had the same name are folders.
        if hasattr(self._binding, "__path__"):
            return NvmlState(
                state=NvmlStatus.OK,
                message=_shadow_notice(str(self._binding.__file__)),
                next_step=_UNSHADOW,
            )
        return NvmlState(state=NvmlStatus.OK)

    def read(self) -> list[Card]:
        """Read every GPU, in NVML's order. A GPU that fails does not hinder the others.

        Raises:
            NvmlUnavailable: The library or the driver as a whole has failed.
        """
        try:
            count = int(self._call("nvmlDeviceGetCount"))
        except QueryFailed as failure:
            raise _library_failure(NvmlStatus.UNKNOWN) from failure
        return [self._read_card(index) for index in range(count)]

    def _call(self, function: str, *arguments: object) -> Any:
        call = getattr(self._binding, function, None)
        if call is None:
            raise QueryFailed(function, NotAvailable.FUNCTION_NOT_FOUND)
        try:
            return call(*arguments)
        except self._binding.NVMLError as error:
            code = int(error.value)
            if code in _LIBRARY_STATUSES:
                raise _library_failure(_LIBRARY_STATUSES[code], code) from None
            reason = _QUERY_REASONS.get(code, NotAvailable.UNKNOWN_ERROR)
            raise QueryFailed(function, reason) from None

    def _text(self, function: str, handle: object) -> str:
        """A text by any binding: some give bytes, some decode and fail on what is no text."""
        try:
            answer = self._call(function, handle)
        except UnicodeDecodeError as error:
            answer = error.object
        return answer.decode(errors="replace") if isinstance(answer, bytes) else str(answer)

    def _read_card(self, index: int) -> Card:
        try:
            handle = self._call("nvmlDeviceGetHandleByIndex", index)
            uuid = self._text("nvmlDeviceGetUUID", handle)
        except QueryFailed as failure:
            return Card(index=index, reason=failure.reason)
        slices = list(self._slices(handle))
        whole = self._sample(handle, uuid, index=index, mig_enabled=self._has_mig(handle))
        parts = (
            self._sample(part, part_uuid, index=None, parent_uuid=uuid)
            for part, part_uuid in slices
        )
        return Card(index=index, samples=(whole, *parts))

    def _has_mig(self, handle: object) -> bool:
        try:
            return bool(self._call("nvmlDeviceGetMigMode", handle)[0])
        except QueryFailed:  # most cards have no MIG and say so
            return False

    def _slices(self, handle: object) -> Iterator[tuple[object, str]]:
        """Handle and UUID of each MIG slice; the list has gaps."""
        if not self._has_mig(handle):
            return
        try:
            room = int(self._call("nvmlDeviceGetMaxMigDeviceCount", handle))
        except QueryFailed:
            return
        for position in range(room):
            try:
                part = self._call("nvmlDeviceGetMigDeviceHandleByIndex", handle, position)
                yield part, self._text("nvmlDeviceGetUUID", part)
            except QueryFailed:
                continue

    def _sample(
        self,
        handle: object,
        uuid: str,
        *,
        index: int | None,
        parent_uuid: str | None = None,
        mig_enabled: bool = False,
    ) -> DeviceSample:
        name = self._name(handle)
        total, used = self._memory(handle, name)
        util = self._util(handle)
        table = self._processes(handle, total.value)
        reasons = {total.reason, used.reason, util.reason, table.reason}
        return DeviceSample(
            uuid=uuid,
            index=index,
            name=name,
            parent_uuid=parent_uuid,
            status=SampleStatus.LOST if NotAvailable.LOST in reasons else SampleStatus.OK,
            mig_enabled=mig_enabled,
            unified_memory=total.reason is NotAvailable.UNIFIED_MEMORY,
            memory_total_bytes=total,
            memory_used_bytes=used,
            util_pct=util,
            processes=table.rows,
            processes_reason=table.reason,
        )

    def _name(self, handle: object) -> str:
        try:
            return self._text("nvmlDeviceGetName", handle)
        except QueryFailed:
            return "unknown"

    def _memory(self, handle: object, name: str) -> tuple[Reading, Reading]:
        """Total and used. The second version leaves out what the driver keeps for itself."""
        versions = [(v,) for v in (getattr(self._binding, "nvmlMemory_v2", None),) if v]
        reason = NotAvailable.FUNCTION_NOT_FOUND
        for version in (*versions, ()):
            try:
                memory = self._call("nvmlDeviceGetMemoryInfo", handle, *version)
            except QueryFailed as failure:
                reason = failure.reason
                if reason is not NotAvailable.FUNCTION_NOT_FOUND:
                    break
            else:
                return Reading(int(memory.total)), Reading(int(memory.used))
        if reason is NotAvailable.NOT_SUPPORTED and any(n in name for n in UNIFIED_MEMORY_NAMES):
            reason = NotAvailable.UNIFIED_MEMORY
        return Reading(reason=reason), Reading(reason=reason)

    def _util(self, handle: object) -> Reading:
        try:
            return Reading(int(self._call("nvmlDeviceGetUtilizationRates", handle).gpu))
        except QueryFailed as failure:
            return Reading(reason=failure.reason)

    def _processes(self, handle: object, total_bytes: float | None) -> ProcessTable:
        stem = "nvmlDeviceGetComputeRunningProcesses"
        versioned = [f"{stem}_v3", f"{stem}_v2"]
        # An old binding knows the plain name alone; a new one maps it to the newest version.
        names = [n for n in versioned if hasattr(self._binding, n)] or [stem]
        for name in names:
            try:
                rows = self._call(name, handle)
            except QueryFailed as failure:
                if failure.reason is not NotAvailable.FUNCTION_NOT_FOUND:
                    return ProcessTable(reason=failure.reason)
            else:
                return read_process_table(
                    [(int(row.pid), row.usedGpuMemory) for row in rows], total_bytes=total_bytes
                )
        return ProcessTable(reason=NotAvailable.FUNCTION_NOT_FOUND)
