"""`workbench doctor`: check this installation and say what to do."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from workbench.frontends.cli.checks import (
    Check,
    Verdict,
    installation_checks,
    jupyter_checks,
    place_checks,
    service_checks,
)
from workbench.frontends.cli.printing import print_json, print_lines
from workbench.frontends.cli.tables import wrapped


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take nothing but `--json`."""
    parser.set_defaults(verb="doctor")


async def run(options: argparse.Namespace) -> int:
    """Run every check; nothing is started and nothing changed.

    Returns:
        0, or 1 where something will not work.
    """
    checks = [
        *installation_checks(),
        *place_checks(),
        *await service_checks(),
        *jupyter_checks(),
    ]
    if options.json:
        print_json(checks)
    else:
        print_lines(line for check in checks for line in _lines(check))
    return int(any(check.verdict is Verdict.PROBLEM for check in checks))


def _lines(check: Check) -> Iterator[str]:
    first = f"{check.verdict:<8} {check.name:<11} "
    yield from wrapped(first, check.message)
    if check.next_step:
        yield from wrapped(" " * len(first) + "→ ", check.next_step)
