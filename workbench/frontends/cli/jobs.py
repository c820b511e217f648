"""`workbench jobs`: running, waiting and lately ended jobs."""

from __future__ import annotations

import argparse

from workbench.frontends.cli.connecting import controller
from workbench.frontends.cli.printing import print_json, print_lines
from workbench.frontends.cli.tables import job_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take `--mine`."""
    parser.add_argument("--mine", action="store_true", help="only your own")


async def run(options: argparse.Namespace) -> int:
    """Show jobs: running ones first, then waiting ones in order, then the latest ended.

    Raises:
        PeerError: The controller does not run or cannot be reached.
    """
    async with controller() as client:
        status = await client.status()
    jobs = [job for job in (*status.jobs, *status.ended) if job.mine or not options.mine]
    if options.json:
        print_json(jobs)
    else:
        simulated = ["SIMULATED"] if status.controller.simulated else []
        print_lines([*simulated, *(job_lines(jobs) if jobs else ["no jobs"])])
    return 0
