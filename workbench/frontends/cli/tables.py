"""Status and jobs as text of at most 80 columns."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence
from typing import Final

from workbench.protocol.messages import ControllerView, Estimate, JobView, Status
from workbench.protocol.quantities import format_bytes, format_seconds
from workbench.protocol.telemetry import DeviceSample, NvmlStatus, Reading, Sample, SampleStatus
from workbench.protocol.text import visible

WIDTH: Final = 80
_INDENT: Final = " " * 10
_JOB: Final = "{:<8}  {:<9} {:<6} {:<10} {:>3} {:>4} {:>9}  {}"
_UNKNOWN: Final = "n/a"


def status_lines(status: Status) -> list[str]:
    """Return the lab: who serves, the devices, the live jobs."""
    lines = [_controller_line(status.controller)]
    lines += [line for notice in status.notices for line in wrapped("! ", notice)]
    lines += _sample_lines(status.sample, status.jobs)
    lines.append("")
    lines += job_lines(status.jobs) if status.jobs else ["no job runs or waits"]
    return lines


def job_lines(jobs: Sequence[JobView]) -> list[str]:
    """Return a table of jobs, each with its reason on lines of its own."""
    head = _JOB.format("ID", "STATE", "CLASS", "OWNER", "GPU", "CPU", "SINCE", "NAME")
    lines = [head]
    for job in jobs:
        lines.append(_job_line(job))
        lines += [line for why in _reasons(job) for line in wrapped(_INDENT, why)]
    return lines


def _controller_line(view: ControllerView) -> str:
    whose = "the lab's" if view.mode == "lab" else "your own"
    simulated = "  SIMULATED" if view.simulated else ""
    line = f"{view.hostname}: {whose} controller, pid {view.pid}, {view.software}{simulated}"
    return _cut(line, WIDTH)


def _sample_lines(sample: Sample | None, jobs: Sequence[JobView]) -> list[str]:
    if sample is None:
        return ["devices: not read yet"]
    host = sample.host
    cores = _spell(host.cores_usable, "{:g}")
    free = _bytes(host.memory_available_bytes)
    total = _bytes(host.memory_total_bytes)
    use = _spell(host.cpu_util_pct, "{:.0f} %")
    lines = [f"CPU    {cores} cores, use {use}, memory {free} of {total} free"]
    for device in sample.devices:
        lines += _device_lines(device, jobs)
    nvml = sample.nvml
    if nvml.message and nvml.state is not NvmlStatus.NOT_IN_USE:
        why = ". ".join(filter(None, [nvml.message, nvml.next_step]))
        lines += wrapped("!      " if sample.devices else "GPU    none: ", why)
    return lines


def _device_lines(device: DeviceSample, jobs: Sequence[JobView]) -> list[str]:
    index = "GPU" if device.index is None else f"GPU {device.index}"
    simulated = " SIMULATED" if device.simulated else ""
    first = f"{index:<6} {device.name} {device.uuid[:12]}{simulated}"
    holders = [f"{job.owner} ({job.id[:8]})" for job in jobs if device.uuid in job.gpus]
    whose = ", ".join(holders) or "not leased"
    if device.status is SampleStatus.OK:
        used, total = _bytes(device.memory_used_bytes), _bytes(device.memory_total_bytes)
        use = f"use {_spell(device.util_pct, '{:.0f} %')}, memory {used} of {total}"
    else:
        age_s = device.stale_age_s
        use = device.status if age_s is None else f"{device.status}, {format_seconds(age_s)} old"
    return [_cut(first, WIDTH), _cut(f"       {use}; {whose}", WIDTH)]


def _job_line(job: JobView) -> str:
    since = job.ended_unix_s or job.started_unix_s or job.submitted_unix_s
    line = _JOB.format(
        job.id[:8],
        job.outcome or job.state,
        job.priority,
        _cut(job.owner, 10),
        len(job.gpus) or job.request.gpus,
        job.cores,
        format_seconds(max(0.0, time.time() - since)),
        job.name if job.name is not None else "(another user's)",
    )
    return _cut(line, WIDTH)


def _reasons(job: JobView) -> list[str]:
    place = f"place {job.place}: " if job.place is not None else ""
    reasons = [f"{place}{job.reason}"] if job.reason else []
    if job.estimate is not None:
        reasons.append(_estimate(job.estimate))
    return reasons


def _estimate(estimate: Estimate) -> str:
    if estimate.high_s is None:
        return f"start: {estimate.reason}"
    low = format_seconds(estimate.low_s or 0.0)
    return f"start: in {low} to {format_seconds(estimate.high_s)}, {estimate.reason}"


def _bytes(reading: Reading) -> str:
    return _UNKNOWN if reading.value is None else format_bytes(reading.value)


def _spell(reading: Reading, form: str) -> str:
    return f"{_UNKNOWN} ({reading.reason})" if reading.value is None else form.format(reading.value)


def wrapped(first: str, text: str) -> list[str]:
    """Return `text` behind `first`, on as many lines as it needs, the others indented as far."""
    return textwrap.wrap(
        visible(" ".join(text.split())),
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
    )


def _cut(text: str, width: int) -> str:
    text = visible(text)  # Before it is cut: what is escaped becomes longer.
    return text if len(text) <= width else f"{text[: width - 1]}…"
