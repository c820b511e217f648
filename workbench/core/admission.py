"""What users may ask for, checked before an event reaches `apply`.

It is kept apart from `apply` so that a rule that a later version adds never refuses history.
"""

from __future__ import annotations

from workbench.core.admission_gpus import check_gpus, check_node, check_spelling
from workbench.core.errors import IllegalEvent, NeverFits, UserError
from workbench.core.events import (
    CancelRequested,
    DrainStarted,
    Event,
    HoldRequested,
    JobSubmitted,
    ReleaseRequested,
)
from workbench.core.model import JobState, Preemption, Request, Shape
from workbench.core.placement import shapes_of
from workbench.core.settings import Quota, Settings
from workbench.core.spelling import count, short_job, spell_bytes
from workbench.core.state import State


def admit(state: State, event: Event, settings: Settings, fitting: dict[Shape, None]) -> None:
    """Refuses what a user asked for if it cannot be.

    Args:
        state: The state; it is not changed.
        event: Any event; only those that users cause are checked.
        settings: The lab's rules.
        fitting: Shapes that this host can give; what is found is added.

    Raises:
        NeverFits: The request is larger than this host could ever give, or not a request.
        UserError: The job id is taken, or no such job or node is known.
        IllegalEvent: A job came before the driver said what the host has.
    """
    if isinstance(event, CancelRequested | HoldRequested | ReleaseRequested):
        _check_known(state, event)
    if isinstance(event, DrainStarted):
        check_node(state, event)
    if isinstance(event, JobSubmitted):
        known = state.find(event.job)
        if known is None:
            _check_submission(state, event, settings, fitting)
        elif (known.owner, known.request) != (event.owner, event.request):
            message = f"the job id {event.job} belongs to another job"
            raise UserError(message, next_step="Submit it again under a new id")


def _check_known(state: State, event: CancelRequested | HoldRequested | ReleaseRequested) -> None:
    job = state.find(event.job)
    if job is None:
        message = f"no job {event.job} is known here"
        raise UserError(message, next_step="`workbench jobs` lists the jobs")
    if isinstance(event, HoldRequested) and job.state is not JobState.QUEUED:
        message = f"{short_job(job.id)} is {job.state}: only a waiting job can be held"
        raise UserError(message, next_step="Cancel it, and submit it again held")


def _check_submission(
    state: State, event: JobSubmitted, settings: Settings, fitting: dict[Shape, None]
) -> None:
    request = event.request
    _check_numbers(request)
    check_spelling(request)
    if request.preemption or request.min_gpus is not None:
        _check_steps(request, settings.steps)
    _check_dependencies(state, request)
    never: NeverFits | None = None
    for shape in shapes_of(request):
        try:
            if shape not in fitting:
                _check_host(state, shape)
                check_gpus(state, shape)
                fitting[shape] = None
            _check_quotas(event, settings, shape)
        except NeverFits as error:
            never = never or error
        else:
            return
    if never is not None:
        raise never


def _check_dependencies(state: State, request: Request) -> None:
    for number, wanted in enumerate(request.after):
        if state.find(wanted.job) is None:
            message = f"after={wanted.job}: no such job is known here"
            raise UserError(message, next_step="`workbench jobs` lists the jobs")
        if any(wanted.job == other.job for other in request.after[:number]):
            message = f"after={wanted.job}: this job is named twice"
            raise UserError(message, next_step="Name each job once")


def _check_quotas(event: JobSubmitted, settings: Settings, shape: Shape) -> None:
    whose: list[tuple[str, Quota]] = [("your", settings.quota_of(event.owner))]
    if event.group in settings.group_quotas:
        whose.append((f"the group {event.group}'s", settings.group_quotas[event.group]))
    for name, quota in whose:
        if quota.gpus is not None and shape.gpus > quota.gpus:
            message = f"gpus={shape.gpus}: {name} quota is {count(quota.gpus, 'GPU')} at one time"
            fewer = f"Ask for at most {count(quota.gpus, 'GPU')}" if quota.gpus else _NO_GPU
            raise NeverFits(message, next_step=fewer)
        is_none = quota.leases == 0 or (shape.gpus and quota.gpu_hours_a_week == 0)
        if is_none:
            message = f"{name} quota lets nothing run"
            raise NeverFits(message, next_step="Ask who keeps this lab for a larger one")


_NO_GPU = "Ask for no GPU (`--device cpu`)"


def _check_numbers(request: Request) -> None:
    _check_least("memory_bytes", request.memory_bytes, 1)
    _check_least("gpu_memory_bytes", request.gpu_memory_bytes, 1)
    _check_least("share_bytes", request.share_bytes, 1)
    for shape in shapes_of(request):
        _check_least("gpus", shape.gpus, 0)
        _check_least("cores", shape.cores, 1)
        _check_least("memory_bytes", shape.memory_bytes, 0)
        _check_least("gpu_memory_bytes", shape.gpu_memory_bytes, 0)
    _check_least("retries", request.retries, 0)
    if request.array is not None:
        _check_least("array.at_once", request.array.at_once, 1)
    for field in ("time_limit_s", "wait_limit_s", "start_after_s", "retry_delay_s"):
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


def _check_least(field: str, value: int | None, bound: int) -> None:
    if value is not None and value < bound:
        message = f"{field}={value} is less than {bound}"
        raise NeverFits(message, next_step=f"Ask for at least {bound}")


def _check_host(state: State, request: Shape) -> None:
    if state.host is None:
        message = "a job was submitted before the host was seen"
        raise IllegalEvent(message)
    if request.cores > state.host.cores:
        message = f"cores={request.cores}: this host has {count(state.host.cores, 'core')}"
        raise NeverFits(message, next_step=f"Ask for at most {count(state.host.cores, 'core')}")
    if request.memory_bytes > state.host.memory_bytes:
        largest = spell_bytes(state.host.memory_bytes)
        message = f"memory={spell_bytes(request.memory_bytes)}: this host has {largest}"
        raise NeverFits(message, next_step=f"Ask for at most {largest} of host memory")
