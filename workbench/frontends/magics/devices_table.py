"""The devices of the lab as rows of text."""

from __future__ import annotations

from workbench.protocol.messages import Status
from workbench.protocol.quantities import format_bytes
from workbench.protocol.telemetry import DeviceSample, HostSample, Reading, SampleStatus


def device_rows(status: Status) -> list[list[str]]:
    """Return `[device, use, memory, whose]` for the host and each GPU, in a stable order."""
    if status.sample is None:
        return [["this host", "not read yet", "not read yet", ""]]
    return [
        _host_row(status.sample.host),
        *(_device_row(device, status) for device in status.sample.devices),
    ]


def absence_text(status: Status) -> str:
    """Return why there is no GPU and what to do, empty where there is one or nothing is known."""
    if status.sample is None or status.sample.devices:
        return ""
    nvml = status.sample.nvml
    parts = [nvml.message or str(nvml.state), nvml.next_step]
    return f"no GPU on this host: {'. '.join(part for part in parts if part)}"


def _host_row(host: HostSample) -> list[str]:
    cores = _spell(host.cores_usable, lambda value: f"{value:g} cores")
    free = _spell(host.memory_available_bytes, format_bytes)
    total = _spell(host.memory_total_bytes, format_bytes)
    return [f"{host.hostname}, {cores}", _percent(host.cpu_util_pct), f"{free} of {total} free", ""]


def _device_row(device: DeviceSample, status: Status) -> list[str]:
    name = f"{device.name} {device.uuid[:12]}" + (" SIMULATED" if device.simulated else "")
    holders = [view for view in status.jobs if device.uuid in view.gpus]
    whose = ", ".join(f"{view.owner}: {view.name or 'a job'}" for view in holders)
    if device.status != SampleStatus.OK:
        age = f" for {device.stale_age_s:.0f} s" if device.stale_age_s is not None else ""
        return [name, f"{device.status.value}{age}", "", whose]
    used = _spell(device.memory_used_bytes, format_bytes)
    total = _spell(device.memory_total_bytes, format_bytes)
    return [name, _percent(device.util_pct), f"{used} of {total}", whose or "free"]


def _percent(reading: Reading) -> str:
    return _spell(reading, lambda value: f"{value:.0f} %")


def _spell(reading: Reading, spell: object) -> str:
    if reading.value is None:
        return f"n/a ({reading.reason})"
    return str(spell(reading.value)) if callable(spell) else str(reading.value)
