"""What a waiting job could ask for instead to start sooner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from workbench.core.estimate import latest_with
from workbench.core.job import Job, is_put_off
from workbench.core.model import Seconds, Shape
from workbench.core.placement import shapes_of
from workbench.core.quotas import Account, Limits
from workbench.core.spelling import count, spell_bytes, spell_seconds
from workbench.core.standings import Standings, in_order
from workbench.core.state import State

_WORTH: Final = 0.9
"""What starts only a little sooner is not worth asking for less."""
_NAMED: Final = 3


def sooner(state: State, standings: Standings, job: Job) -> tuple[str, ...]:
    """Tries what else a waiting job could ask for.

    Args:
        state: The state; it is not changed.
        standings: Where its jobs stand.
        job: A waiting job.

    Returns:
        Clauses such as `with 1 GPU in place of 2 it would start now`, the most like what it asks
        for first; none where nothing would help, or nobody can say.
    """
    if is_put_off(job, state.at) or job.owner not in state.agents:
        return ()
    order, limits = in_order(state, standings), Limits(state, standings.settings)
    account = Account.of(job)
    asked = shapes_of(job.request)
    now_s = min(
        (
            start_s
            for shape in limits.allowed(account, asked)
            if (start_s := latest_with(state, order, job, shape)) is not None
        ),
        default=None,
    )
    found: list[str] = []
    for what, shape in _instead(state, asked[0]):
        if shape in asked or not limits.allowed(account, (shape,)):
            continue
        start_s = latest_with(state, order, job, shape)
        if start_s is not None and _is_worth_it(start_s, now_s):
            when = "now" if start_s == 0 else f"within {spell_seconds(start_s)}"
            found.append(f"with {what} it would start {when}")
            if start_s == 0 or len(found) == _NAMED:
                break
            now_s = start_s  # What is less alike has to be sooner still.
    return tuple(found)


def _is_worth_it(start_s: Seconds, now_s: Seconds | None) -> bool:
    return now_s is None or start_s < _WORTH * now_s


def _instead(state: State, shape: Shape) -> Iterator[tuple[str, Shape]]:
    """Lists what is like a shape but less, the likest first."""
    if shape.models:
        yield "GPUs of any model", shape._replace(models=())
    if shape.gpus and shape.gpu_memory_bytes:
        sizes = {gpu.memory_bytes for gpu in state.devices.values() if gpu.memory_bytes}
        smaller = max((size for size in sizes if size < shape.gpu_memory_bytes), default=None)
        if smaller is not None:
            what = f"{spell_bytes(smaller)} of memory a GPU"
            yield what, shape._replace(gpu_memory_bytes=smaller)
    if shape.memory_bytes > 1:
        half = shape.memory_bytes // 2
        yield f"{spell_bytes(half)} of host memory", shape._replace(memory_bytes=half)
    for gpus in range(shape.gpus - 1, 0, -1):
        yield f"{count(gpus, 'GPU')} in place of {shape.gpus}", shape._replace(gpus=gpus)
    if shape.mig:
        profiles = dict.fromkeys(gpu.mig for gpu in state.devices.values() if gpu.mig)
        for profile in profiles:
            yield f"slices {profile}", shape._replace(mig=profile)
    if shape.gpus:
        on_cores = shape._replace(gpus=0, gpu_memory_bytes=0, share_bytes=0, mig="", models=())
        yield "no GPU", on_cores
        shape = on_cores
    cores = shape.cores // 2
    while cores:
        yield count(cores, "core"), shape._replace(cores=cores)
        cores //= 2
