"""Carries what an exception's traceback shows; the exception itself crosses like any object.

A frame cannot cross, so the home makes one that shows the same: the same file, line, function and
names of arguments. Nothing in it has run.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, TracebackType
from typing import Any, Final

_MODULE: Final = "<module>"
_MARK: Final = "__made_frame__"
_STARRED: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedFrame:
    """One line of a traceback.

    Attributes:
        filename: Of the code.
        name: Of the function, and in full.
        qualname: See `name`.
        first_line: Where the function begins.
        place: Where it was: line, last line, column, last column.
        arguments: Names of its parameters.
        counts: How many of them are positional, and how many can only be given by name.
        starred: Whether it takes `*args` and `**kwargs`, as flags of `inspect`.
        module: Its module's name and file.
    """

    filename: str
    name: str
    qualname: str
    first_line: int
    place: tuple[int | None, ...]
    arguments: tuple[str, ...]
    counts: tuple[int, int]
    starred: int
    module: tuple[Any, Any]


def cut_to(error: BaseException, filename: str) -> None:
    """Drop the frames above the cell's own from an exception's traceback.

    Args:
        error: As it was caught.
        filename: The cell's; where no frame is of it, all frames stay.
    """
    frames = first_in(error.__traceback__, filename)
    if frames is not None:
        error.__traceback__ = frames


def first_in(frames: TracebackType | None, filename: str) -> TracebackType | None:
    """Return a traceback from its first frame of a file on; None where it has none."""
    while frames is not None and frames.tb_frame.f_code.co_filename != filename:
        frames = frames.tb_next
    return frames


def tracebacks(error: BaseException) -> list[list[CarriedFrame]]:
    """Return the tracebacks of an exception and of all that it arose from."""
    return [[_carried(one) for one in _links(error.__traceback__)] for error in _chain(error)]


def give_tracebacks(error: BaseException, carried: list[list[CarriedFrame]]) -> None:
    """Give an exception that crossed the tracebacks that `tracebacks` returned."""
    for one, frames in zip(_chain(error), carried, strict=True):
        made: TracebackType | None = None
        for frame in reversed(frames):
            made = _made(frame, made)
        one.__traceback__ = made


def _links(frames: TracebackType | None) -> Iterator[TracebackType]:
    while frames is not None:
        yield frames
        frames = frames.tb_next


def _carried(link: TracebackType) -> CarriedFrame:
    code = link.tb_frame.f_code
    starred = code.co_flags & _STARRED
    count = code.co_argcount + code.co_kwonlyargcount + starred.bit_count()
    return CarriedFrame(
        filename=code.co_filename,
        name=code.co_name,
        qualname=code.co_qualname,
        first_line=code.co_firstlineno,
        place=(link.tb_lineno, *_place(link)[1:]),
        arguments=() if code.co_name == _MODULE else code.co_varnames[:count],
        counts=(code.co_argcount, code.co_kwonlyargcount),
        starred=starred,
        module=tuple(link.tb_frame.f_globals.get(name) for name in ("__name__", "__file__")),  # type: ignore[arg-type]
    )


def _place(link: TracebackType) -> tuple[int | None, ...]:
    return list(link.tb_frame.f_code.co_positions())[link.tb_lasti // 2]


def _made(frame: CarriedFrame, rest: TracebackType | None) -> TracebackType:
    """Return a traceback of a frame that shows what the carried one did, and the rest."""
    name, file = frame.module
    names: dict[str, Any] = {"__name__": name, "__file__": file}
    try:
        if frame.name == _MODULE:
            exec(_module_code(frame), names)  # noqa: S102  (it raises at once)
        else:
            function = FunctionType(_function_code(frame), names)
            positional, by_name = frame.counts
            given = dict.fromkeys(frame.arguments[positional : positional + by_name])
            function(*[None] * positional, **given)
    except NameError as raised:
        link = raised.__traceback__
        assert link is not None
        assert link.tb_next is not None
        link = link.tb_next
        return TracebackType(rest, link.tb_frame, link.tb_lasti, link.tb_lineno)
    raise AssertionError("a made frame raises")


def _module_code(frame: CarriedFrame) -> CodeType:
    return _compiled(_MARK, frame).replace(co_firstlineno=1)


def _function_code(frame: CarriedFrame) -> CodeType:
    """Return the code of a function with the same parameters."""
    positional, by_name = frame.counts
    names = [f"a{index}" for index in range(len(frame.arguments))]
    parameters = names[:positional]
    if frame.starred & inspect.CO_VARARGS:
        parameters.append("*v")
    elif by_name:
        parameters.append("*")
    parameters += names[positional : positional + by_name]
    if frame.starred & inspect.CO_VARKEYWORDS:
        parameters.append("**k")
    source = "\n" * (frame.first_line - 1) + f"def f({', '.join(parameters)}): {_MARK}"
    (code,) = [one for one in _compiled(source, frame).co_consts if isinstance(one, CodeType)]
    return code.replace(co_name=frame.name, co_qualname=frame.qualname, co_varnames=frame.arguments)


def _compiled(source: str, frame: CarriedFrame) -> CodeType:
    """Compile code that fails at the frame's place."""
    tree = ast.parse(source)
    line, last_line, column, last_column = frame.place
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Expr):
            node.lineno, node.end_lineno = line or 1, last_line
            node.col_offset, node.end_col_offset = column or 0, last_column
    return compile(tree, frame.filename, "exec")


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
