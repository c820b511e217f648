"""Whether a GPU is used by somebody outside Workbench."""

from __future__ import annotations

from workbench.protocol.telemetry import DeviceSample, SampleStatus

IDLE_BASELINE_BYTES = 64 * 2**20
"""What an unused card may hold: a few to some tens of MiB. The smallest CUDA context holds more."""
MIB = 2**20


def outside_use(sample: DeviceSample) -> str | None:
    """Who or what holds a GPU that is not leased, for people; None where it is free.

    Utilisation plays no part: a resident process at 0 % still holds its memory, and utilisation
    that cannot be read says nothing.
    """
    if sample.simulated:
        return None
    if sample.processes:
        stranger = sample.processes[0]
        owner = stranger.owner_uid
        who = f"of user id {owner.value}" if owner.value is not None else f"({owner.reason})"
        return f"in use outside Workbench by process {stranger.pid} {who}"
    return _unexplained_memory(sample)


def _unexplained_memory(sample: DeviceSample) -> str | None:
    """What the memory alone says of a GPU for which no process is listed."""
    used = sample.memory_used_bytes
    if used.value is None:
        is_list_complete = sample.processes_reason is None and sample.status is SampleStatus.OK
        return None if is_list_complete else f"its use cannot be seen ({used.reason})"
    if used.value <= IDLE_BASELINE_BYTES:
        return None
    return f"{used.value / MIB:.0f} MiB in use outside Workbench by a process that is not shown"


def can_be_leased(sample: DeviceSample) -> bool:
    """Whether this is a whole GPU in good order; one that is split into slices is not."""
    return (
        sample.status is SampleStatus.OK and not sample.mig_enabled and sample.parent_uuid is None
    )
