"""What users may ask for, checked before an event reaches `apply`.

It is kept apart from `apply` so that a rule that a later version adds never refuses history.
"""

from __future__ import annotations

from workbench.core.admission_gpus import check_gpus, check_node, check_spelling
from workbench.core.errors import IllegalEvent, NeverFits, UserError
from workbench.core.events import CancelRequested, DrainStarted, Event, JobSubmitted
from workbench.core.model import Request, Shape
from workbench.core.placement import shape_of
from workbench.core.spelling import count, spell_bytes
from workbench.core.state import State


def admit(state: State, event: Event, fitting: dict[Shape, None]) -> None:
    """Refuses what a user asked for if it cannot be.

    Args:
        state: The state; it is not changed.
        event: Any event; only those that users cause are checked.
        fitting: Shapes that this host can give; what is found is added.

    Raises:
        NeverFits: The request is larger than this host could ever give, or not a request.
        UserError: The job id is taken, or no such job or node is known.
        IllegalEvent: A job came before the driver said what the host has.
    """
    if isinstance(event, CancelRequested) and state.find(event.job) is None:
        message = f"no job {event.job} is known here"
        raise UserError(message, next_step="`workbench jobs` lists the jobs")
    if isinstance(event, DrainStarted):
        check_node(state, event)
    if isinstance(event, JobSubmitted):
        known = state.find(event.job)
        if known is None:
            _check_numbers(event.request)
            check_spelling(event.request)
            shape = shape_of(event.request)
            if shape not in fitting:
                _check_host(state, event.request)
                check_gpus(state, shape)
                fitting[shape] = None
        elif (known.owner, known.request) != (event.owner, event.request):
            message = f"the job id {event.job} belongs to another job"
            raise UserError(message, next_step="Submit it again under a new id")


def _check_numbers(request: Request) -> None:
    least = {"gpus": 0, "cores": 1, "memory_bytes": 1, "gpu_memory_bytes": 1, "share_bytes": 1}
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
