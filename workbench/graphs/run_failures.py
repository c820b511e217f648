"""Carries what an exception's traceback shows; the exception itself crosses like any object."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

from tblib import Traceback


def cut_to(error: BaseException, filename: str) -> None:
    """Drop the frames above the cell's own from an exception's traceback.

    Args:
        error: As it was caught.
        filename: The cell's; where no frame is of it, all frames stay.
    """
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != filename:
        frames = frames.tb_next
    if frames is not None:
        error.__traceback__ = frames


def tracebacks(error: BaseException) -> list[dict[str, Any] | None]:
    """Return the tracebacks of an exception and of all that it arose from, as plain values."""
    return [
        None if one.__traceback__ is None else Traceback(one.__traceback__).as_dict()
        for one in _chain(error)
    ]


def give_tracebacks(error: BaseException, carried: list[dict[str, Any] | None]) -> None:
    """Give an exception that crossed the tracebacks that `tracebacks` returned."""
    for one, frames in zip(_chain(error), carried, strict=True):
        one.__traceback__ = None if frames is None else _frames(frames)


def _frames(carried: dict[str, Any]) -> TracebackType | None:
    frames: TracebackType | None = Traceback.from_dict(carried).as_traceback()
    return frames


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Walk the links of an exception, each once, in an order that both sides share."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        pending += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            pending += one.exceptions
