"""The command `workbench`. One file a verb; a verb is imported when it is used.

Exit codes
0  done
1  refused, or not found, or `doctor` found a problem
2  the command line cannot be read
3  controller or agent cannot be reached, or failed
4  a bug in Workbench
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final, Protocol

VERBS: Final = {
    "status": "the lab now: devices, use, running and waiting jobs",
    "jobs": "running, waiting and lately ended jobs",
    "cancel": "end jobs of yours",
    "up": "start your controller and your agent",
    "down": "stop your controller and your agent; jobs that run go on",
    "doctor": "check this installation and say what to do",
    "simulate": "replay a trace, or this lab's history, under a policy",
    "controller": "serve in the foreground, for a lab's service",
}


class Verb(Protocol):
    """What the module of a verb offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare what this verb takes."""

    async def run(self, options: argparse.Namespace) -> int:
        """Do it and return the exit code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    Args:
        arguments: What was typed after `workbench`; None for this process's own.

    Returns:
        The exit code, see above.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["controller"]:
        from workbench.frontends.cli.controller import become

        become(words[1:])
    parser, verb = _parser(words[0] if words else "")
    options = parser.parse_args(words)
    if verb is None:
        parser.print_help()
        return 2
    return _run(verb, options)


def _parser(word: str) -> tuple[argparse.ArgumentParser, Verb | None]:
    """Return the parser, with the arguments of the one verb that was typed."""
    parser = argparse.ArgumentParser(
        prog="workbench",
        description="A shared GPU lab inside JupyterLab.",
        epilog=(__doc__ or "").split("\n\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which version this is")
    verbs = parser.add_subparsers(metavar="VERB")
    chosen: Verb | None = None
    for name, summary in VERBS.items():
        one = verbs.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        if name == word:
            chosen = importlib.import_module(f"workbench.frontends.cli.{name}")
            one.add_argument("--json", action="store_true", help="print JSON for programs")
            chosen.add_arguments(one)
    return parser, chosen


class _Version(argparse.Action):
    def __call__(self, *_: object) -> None:
        from workbench import __version__

        print(f"gpu-workbench {__version__}")
        sys.exit(0)


def _run(verb: Verb, options: argparse.Namespace) -> int:
    try:
        code = _finished(verb, options)
        sys.stdout.flush()
    except BrokenPipeError:  # `workbench jobs | head`
        # What is left in the buffer must not be tried again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return code


def _finished(verb: Verb, options: argparse.Namespace) -> int:
    from workbench.client import WorkbenchError
    from workbench.frontends.cli.failing import exit_code, report

    try:
        return asyncio.run(verb.run(options))
    except WorkbenchError as error:
        report(error, as_json=options.json)
        return exit_code(error)
