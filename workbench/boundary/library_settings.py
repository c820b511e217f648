"""Settings of libraries that change what code computes or shows, as plain values.

Left out, since no plain value tells them: pandas' options that are functions of the notebook,
numpy's print formatters, log handlers other than those on stdout and stderr.
"""

from __future__ import annotations

import logging
import sys
import types
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

_STREAMS: Final = ("stdout", "stderr")
_PLAIN: Final = (type(None), bool, int, float, str)
_ABSENT: Final = object()  # Never an option's value.


def read_decimal() -> tuple[Any, ...]:
    """Returns the arithmetic context of this thread."""
    context = _library("decimal").getcontext()
    traps = [signal.__name__ for signal, is_on in context.traps.items() if is_on]
    limits = (context.Emin, context.Emax, context.capitals, context.clamp)
    return context.prec, context.rounding, limits, sorted(traps)


def set_decimal(_: Any, now: tuple[Any, ...]) -> None:
    """Sets it, flags left alone."""
    decimal = _library("decimal")
    context = decimal.getcontext()
    context.prec, context.rounding, limits, traps = now
    context.Emin, context.Emax, context.capitals, context.clamp = limits
    for signal in context.traps:
        context.traps[signal] = signal.__name__ in traps


def read_numpy() -> tuple[dict[str, str], dict[str, Any]]:
    """Returns what numpy does on floating-point errors, and how it prints."""
    numpy = _library("numpy")
    shown = numpy.get_printoptions()
    shown.pop("formatter", None)
    return numpy.geterr(), shown


def set_numpy(_: Any, now: tuple[dict[str, str], dict[str, Any]]) -> None:
    """Sets both."""
    numpy = _library("numpy")
    numpy.seterr(**now[0])
    numpy.set_printoptions(**now[1])


def read_pandas() -> dict[str, Any]:
    """Returns the options, by their full names."""
    # To get them one by one warns of those that are about to go.
    return dict(_options(_library("pandas").options.d, ""))


def set_pandas(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> None:
    """Sets the options that changed."""
    set_option = _library("pandas").set_option
    if before is None:  # It was loaded there meanwhile: only what differs from ours was changed.
        before = read_pandas()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Whoever set it first was warned.
        for name, value in now.items():
            if before.get(name, _ABSENT) != value:
                set_option(name, value)


def _options(level: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in level.items():
        if isinstance(value, dict):
            yield from _options(value, f"{prefix}{name}.")
        elif isinstance(value, _PLAIN) or _is_format(value):
            yield prefix + name, value


def _is_format(value: Any) -> bool:
    """Returns whether a value is the likes of `"{:.2f}".format`."""
    is_method = isinstance(value, types.BuiltinMethodType)
    return is_method and type(value.__self__) is str and value.__name__ == "format"


def read_torch() -> tuple[str, bool, bool]:
    """Returns default dtype, whether gradients are recorded, whether results must be exact."""
    torch = _library("torch")
    exact = torch.are_deterministic_algorithms_enabled()
    return str(torch.get_default_dtype()), torch.is_grad_enabled(), exact


def set_torch(_: Any, now: tuple[str, bool, bool]) -> None:
    """Sets them."""
    torch = _library("torch")
    torch.set_default_dtype(getattr(torch, now[0].removeprefix("torch.")))
    torch.set_grad_enabled(now[1])
    torch.use_deterministic_algorithms(now[2])


def set_recursion_limit(_: Any, now: int) -> None:
    """Sets how deep calls may nest."""
    sys.setrecursionlimit(now)


def read_logging() -> tuple[dict[str, int], list[tuple[str, int, str | None]]]:
    """Returns the levels that were set, by logger, and the root's handlers on stdout and stderr."""
    loggers = {"": logging.getLogger()} | {
        name: one
        for name, one in logging.root.manager.loggerDict.items()
        if isinstance(one, logging.Logger)
    }
    levels = {name: one.level for name, one in loggers.items() if one.level != logging.NOTSET}
    handlers = []
    for handler in logging.getLogger().handlers:
        stream = _stream_of(handler)
        if stream is not None:
            form = None if handler.formatter is None else handler.formatter._fmt  # noqa: SLF001
            handlers.append((stream, handler.level, form))
    return levels, handlers


def set_logging(_: Any, now: tuple[dict[str, int], list[tuple[str, int, str | None]]]) -> None:
    """Sets the levels; gives the root the handlers where it has others on these streams."""
    levels, handlers = now
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    root = logging.getLogger()
    if read_logging()[1] == handlers:
        return
    for old in [one for one in root.handlers if _stream_of(one) is not None]:
        root.removeHandler(old)
    for stream, level, form in handlers:
        handler = logging.StreamHandler(getattr(sys, stream))
        handler.setLevel(level)
        if form is not None:
            handler.setFormatter(logging.Formatter(form))
        root.addHandler(handler)


def _stream_of(handler: logging.Handler) -> str | None:
    if type(handler) is not logging.StreamHandler:
        return None
    return next((name for name in _STREAMS if handler.stream is getattr(sys, name)), None)


def _library(name: str) -> Any:
    return sys.modules[name]
