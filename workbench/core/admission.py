"""What users may ask for, checked before an event reaches `apply`.

It is kept apart from `apply` so that a rule that a later version adds never refuses history.
"""

from __future__ import annotations

from workbench.core.errors import IllegalEvent, NeverFits, UserError
from workbench.core.events import CancelRequested, Event, JobSubmitted
from workbench.core.model import DeviceStatus, Preemption, Request, Shape
from workbench.core.placement import is_large_enough, shape_of
from workbench.core.spelling import count, spell_bytes
from workbench.core.state import Device, State


def admit(
    state: State, event: Event, fitting: dict[Shape, None], steps: tuple[Preemption, ...]
) -> None:
    """Refuses what a user asked for if it cannot be.

    Args:
        state: The state; it is not changed.
        event: Any event; only those that users cause are checked.
        fitting: Shapes that this host can give; what is found is added.
        steps: The steps of preemption that this lab can carry out.

    Raises:
        NeverFits: The request is larger than this host could ever give, or not a request.
        UserError: The job id is taken, or no such job is known.
        IllegalEvent: A job came before the driver said what the host has.
    """
    if isinstance(event, CancelRequested) and state.find(event.job) is None:
        message = f"no job {event.job} is known here"
        raise UserError(message, next_step="`workbench jobs` lists the jobs")
    if isinstance(event, JobSubmitted):
        known = state.find(event.job)
        if known is None:
            _check_numbers(event.request)
            if event.request.preemption or event.request.min_gpus is not None:
                _check_steps(event.request, steps)
            shape = shape_of(event.request)
            if shape not in fitting:
                _check_host(state, event.request)
                _check_gpus(state, event.request)
                fitting[shape] = None
        elif (known.owner, known.request) != (event.owner, event.request):
            message = f"the job id {event.job} belongs to another job"
            raise UserError(message, next_step="Submit it again under a new id")


def _check_numbers(request: Request) -> None:
    least = {"gpus": 0, "cores": 1, "memory_bytes": 1, "gpu_memory_bytes": 1}
    for field, bound in least.items():
        value = getattr(request, field)
        if value is not None and value < bound:
            message = f"{field}={value} is less than {bound}"
            raise NeverFits(message, next_step=f"Ask for at least {bound}")
    for field in ("time_limit_s", "wait_limit_s"):
        value = getattr(request, field)
        if value is not None and not 0 < value < float("inf"):
            message = f"{field}={value} is not a finite time of more than 0 seconds"
            raise NeverFits(message, next_step="Give a time of more than 0 seconds, or none")


def _check_steps(request: Request, steps: tuple[Preemption, ...]) -> None:
    for step in request.preemption:
        if step not in steps:
            message = f"preemption={step}: this lab cannot carry that step out"
            known = ", ".join(steps)
            next_step = f"Choose among {known}, or none" if known else "Ask for no preemption"
            raise NeverFits(message, next_step=next_step)
    least = request.min_gpus
    if least is not None and not 1 <= least <= request.gpus:
        message = f"min_gpus={least} is not from 1 to gpus={request.gpus}"
        raise NeverFits(message, next_step="Give the fewest GPUs that the job can go on with")
    if least is None and Preemption.SHRINK in request.preemption:
        message = f"preemption={Preemption.SHRINK}: it does not say how far"
        raise NeverFits(message, next_step="Give min_gpus, the fewest it can go on with")


def _check_host(state: State, request: Request) -> None:
    if state.host is None:
        message = "a job was submitted before the host was seen"
        raise IllegalEvent(message)
    if request.cores > state.host.cores:
        message = f"cores={request.cores}: this host has {count(state.host.cores, 'core')}"
        raise NeverFits(message, next_step=f"Ask for at most {count(state.host.cores, 'core')}")
    if request.memory_bytes is not None and request.memory_bytes > state.host.memory_bytes:
        largest = spell_bytes(state.host.memory_bytes)
        message = f"memory={spell_bytes(request.memory_bytes)}: this host has {largest}"
        raise NeverFits(message, next_step=f"Ask for at most {largest} of host memory")


def _check_gpus(state: State, request: Request) -> None:
    if request.gpus == 0:
        return
    devices = [gpu for gpu in state.devices.values() if _may_come_back(gpu)]
    pools = [[gpu for gpu in devices if gpu.simulated is simulated] for simulated in (False, True)]
    pool = max(pools, key=lambda gpus: (_count_large(gpus, request), len(gpus)))
    if not pool:
        message = f"gpus={request.gpus}: there is no GPU on this host"
        raise NeverFits(message, next_step="Ask for no GPU (`--device cpu`)")
    large = _count_large(pool, request)
    if large < request.gpus:
        raise _too_much_gpu(pool, request, large)


def _may_come_back(gpu: Device) -> bool:
    """Whether a job may wait for this GPU: a simulated one was taken away for good."""
    return not (gpu.simulated and gpu.status is DeviceStatus.MISSING)


def _count_large(gpus: list[Device], request: Request) -> int:
    return sum(is_large_enough(gpu, request.gpu_memory_bytes or 0) for gpu in gpus)


def _too_much_gpu(pool: list[Device], request: Request, large: int) -> NeverFits:
    """Names what is too large, and the largest that would fit: fewer GPUs, or smaller ones."""
    sizes = sorted((gpu.memory_bytes for gpu in pool if gpu.memory_bytes is not None), reverse=True)
    gpus = f"gpus={request.gpus}: this host has {count(large, 'GPU')}"
    fewer = f"Ask for at most {count(large, 'GPU')}"
    if request.gpu_memory_bytes is None:
        return NeverFits(gpus, next_step=fewer)
    asked = spell_bytes(request.gpu_memory_bytes)
    if not sizes:
        message = f"gpu_memory={asked}: no GPU of this host says how much memory it has"
        return NeverFits(message, next_step="Ask for no amount of GPU memory")
    smaller = f"at most {spell_bytes(sizes[min(request.gpus, len(sizes)) - 1])} of memory each"
    if large == 0:
        message = f"gpu_memory={asked}: the largest GPU of this host has {spell_bytes(sizes[0])}"
        most = count(min(request.gpus, len(sizes)), "GPU")
        return NeverFits(message, next_step=f"Ask for {most} with {smaller}")
    message = f"{gpus} with {asked} or more"
    either = f"{fewer}, or for {smaller}" if request.gpus <= len(sizes) else fewer
    return NeverFits(message, next_step=either)
