"""What may stand behind `%%gpu-schedule`, and what it means as a request."""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, get_args

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments

from workbench.client import UserError
from workbench.protocol.messages import RequestSpec
from workbench.protocol.quantities import check_count, parse_bytes, parse_seconds

Priority = Literal["high", "normal", "low"]
PRIORITIES: Final = get_args(Priority)
DEVICES: Final = ("auto", "cpu", "gpu")
SPLITS: Final = ("auto", "none")

_OPTION: Final = re.compile(
    r"\s*--(?:detach|dry-run)(?!\S)|\s*--[\w-]+(?:=|\s+)(?:\"[^\"]*\"|'[^']*'|\S+)"
)
"""A flag, or an option with its value; what follows the last one is code."""

_NEGATIVE: Final = re.compile(r"-[\d.]")
_TAKES_VALUE: Final = re.compile(r"--(?!detach$|dry-run$)[\w-]+")

_UNKNOWN: Final = re.compile(r"unrecognized arguments: (--[\w-]+)")
"""As argparse says it."""
_LOOKS_LIKE_OPTION: Final = re.compile(r"--[a-z][\w-]*")

_ARGUMENTS: Final = (
    argument("--priority", choices=PRIORITIES, default="normal", help="class in the queue"),
    argument("--gpus", type=int, metavar="N", help="whole GPUs, all at once"),
    argument("--cpus", type=int, metavar="N", help="CPU cores; default: the width of the plan"),
    argument("--gpu-memory", metavar="SIZE", help="memory that each GPU must have, e.g. 6GiB"),
    argument("--memory", metavar="SIZE", help="host memory to set apart, e.g. 8GiB"),
    argument("--time", metavar="TIME", help="stop the cell after this long, e.g. 20m"),
    argument("--device", choices=DEVICES, default="auto", help="where the cell runs"),
    argument("--name", help="what the queue calls this cell"),
    argument("--detach", action="store_true", help="do not wait; gives a Job"),
    argument("--dry-run", action="store_true", help="show plan and advice, run nothing"),
    argument("--split", choices=SPLITS, default="auto", help="whether to look for parallel parts"),
)

OPTIONS: Final[tuple[str, ...]] = tuple(one.args[0] for one in _ARGUMENTS)


def schedule_arguments(function: Any) -> Any:
    """Decorate the magic with its options, which gives `--help` and Tab completion."""
    for one in reversed(_ARGUMENTS):
        function = one(function)
    return magic_arguments("gpu-schedule")(function)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one scheduled cell, checked.

    Attributes:
        gpus: None where the user said nothing; then the advice decides. Who names the memory of a
            GPU wants one.
        cpus: None where the user said nothing; then the plan's width decides.
    """

    priority: Priority
    gpus: int | None
    cpus: int | None
    gpu_memory_bytes: int | None
    memory_bytes: int | None
    time_limit_s: float | None
    device: str
    name: str | None
    detach: bool
    dry_run: bool
    split: str

    def request(self, *, gpus: int, cores: int) -> RequestSpec:
        """Return the request for a cell that gets `gpus` GPUs and `cores` cores."""
        return RequestSpec(
            kind="cell",
            priority=self.priority,
            gpus=gpus,
            cores=cores,
            memory_bytes=self.memory_bytes,
            gpu_memory_bytes=self.gpu_memory_bytes,
            time_limit_s=self.time_limit_s,
        )


def parse_options(magic: Any, line: str) -> Options:
    """Read the magic's line.

    Args:
        magic: The decorated magic function.
        line: What stands behind its name, without code.

    Raises:
        UsageError: An option is unknown or misspelt.
        UserError: A value breaks a rule; the message names value, rule and next step.
    """
    try:
        given = read_arguments(magic, line)
    except UsageError as error:
        if unknown := _UNKNOWN.search(str(error)):
            _check_known(unknown[1])
        raise
    _check(given)
    return Options(
        priority=given.priority,
        gpus=1 if given.gpus is None and given.gpu_memory else given.gpus,
        cpus=given.cpus,
        gpu_memory_bytes=(
            parse_bytes(given.gpu_memory, "--gpu-memory") if given.gpu_memory else None
        ),
        memory_bytes=parse_bytes(given.memory, "--memory") if given.memory else None,
        time_limit_s=parse_seconds(given.time, "--time") if given.time else None,
        device=given.device,
        name=given.name,
        detach=given.detach,
        dry_run=given.dry_run,
        split=given.split,
    )


def read_arguments(magic: Any, line: str) -> argparse.Namespace:
    """Read a magic's line as a shell would: quotes hold words together and are not part of them.

    Args:
        magic: The decorated magic function.
        line: What stands behind its name, without code.

    Raises:
        UsageError: An option is unknown or misspelt, or a quote is open.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"the options cannot be read: {error}; close every quote") from error
    given: argparse.Namespace = magic.parser.parse_args(_joined(words))
    return given


def _joined(words: list[str]) -> list[str]:
    """Write `--memory -5GB` as `--memory=-5GB`, which argparse takes for two options."""
    joined: list[str] = []
    for word in words:
        if joined and _NEGATIVE.match(word) and _TAKES_VALUE.fullmatch(joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _check(given: argparse.Namespace) -> None:
    if given.gpus is not None:
        check_count(given.gpus, "--gpus", least=0, what="whole GPUs")
    if given.cpus is not None:
        check_count(given.cpus, "--cpus", least=1, what="cores")
    if given.device == "cpu" and given.gpus:
        _refuse(
            f"--device cpu and --gpus {given.gpus} contradict each other",
            "Drop one of the two",
        )
    if given.device == "gpu" and given.gpus == 0:
        _refuse("--device gpu and --gpus 0 contradict each other", "Drop one of the two")
    if given.gpu_memory and (given.device == "cpu" or given.gpus == 0):
        _refuse(
            f"--gpu-memory {given.gpu_memory} asks for a GPU, but this cell is to have none",
            "Drop --gpu-memory, or --device cpu / --gpus 0",
        )


def _refuse(message: str, next_step: str) -> NoReturn:
    raise UserError(message, next_step=next_step)


def split_line(line: str) -> tuple[str, str]:
    """Return the options at the head of `line` and the code behind them, untouched.

    `--cpus 2 f("a b")` gives `("--cpus 2", 'f("a b")')`.
    """
    position = 0
    while match := _OPTION.match(line, position):
        position = match.end()
    return line[:position].strip(), line[position:].strip()


def refuse_leftover(code: str, *, is_cell: bool) -> None:
    """Refuse what stands behind the options where it is no code.

    Args:
        code: What `split_line` took for code.
        is_cell: Whether the code stands below the line, so that there is none on it.

    Raises:
        UsageError: It is an option that nobody knows, or one without its value, or no option.
    """
    word = code.split(maxsplit=1)[0].partition("=")[0] if code else ""
    if _LOOKS_LIKE_OPTION.fullmatch(word):
        _check_known(word)
        raise UsageError(f"{word} needs a value; `%gpu-schedule --help` says which")
    if is_cell and code:
        raise UsageError(f"unexpected {code!r} behind the options; code goes below the line")


def _check_known(word: str) -> None:
    """Refuse an option that nobody knows; a beginning that only one option has is known."""
    if any(option.startswith(word) for option in OPTIONS):
        return
    close = difflib.get_close_matches(word, OPTIONS, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    raise UsageError(f"there is no option {word}; {meant}`%gpu-schedule --help` lists them")


def help_text(magic: Any) -> str:
    """Return what `%%gpu-schedule --help` prints."""
    # IPython writes the usage as a literal block of reStructuredText.
    return str(magic.parser.format_help()).removeprefix("::").strip("\n")
