"""`workbench status`: the lab now."""

from __future__ import annotations

import argparse

from workbench.frontends.cli.connecting import controller
from workbench.frontends.cli.printing import print_json, print_lines
from workbench.frontends.cli.tables import status_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take nothing but `--json`."""
    parser.set_defaults(verb="status")


async def run(options: argparse.Namespace) -> int:
    """Show devices, use, running and waiting jobs.

    Raises:
        PeerError: The controller does not run or cannot be reached.
    """
    async with controller() as client:
        status = await client.status()
    if options.json:
        print_json(status)
    else:
        print_lines(status_lines(status))
    return 0
