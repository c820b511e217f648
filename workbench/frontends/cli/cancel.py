"""`workbench cancel ID…`: end jobs of yours."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from workbench.client import UserError
from workbench.frontends.cli.connecting import controller
from workbench.frontends.cli.printing import print_json, print_lines
from workbench.protocol.messages import JobView


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the ids."""
    parser.add_argument("ids", nargs="+", metavar="ID", help="a job's id, or how it begins")


async def run(options: argparse.Namespace) -> int:
    """Cancel each job; where one id is wrong, none is cancelled.

    Raises:
        UserError: An id fits no job or several, or a job is another user's.
        PeerError: The controller does not run or cannot be reached.
    """
    async with controller() as client:
        status = await client.status()
        jobs = [*status.jobs, *status.ended]
        chosen = [find(jobs, word) for word in options.ids]
        for job in chosen:
            await client.cancel(job.id)
        status = await client.status()
    ids = {job.id for job in chosen}
    after = [job for job in (*status.jobs, *status.ended) if job.id in ids]
    if options.json:
        print_json(after)
    else:
        print_lines(f"{job.id[:8]}  {job.outcome or job.state}" for job in after)
    return 0


def find(jobs: Sequence[JobView], word: str) -> JobView:
    """Return the job whose id begins with `word`; a live one before ended ones.

    Raises:
        UserError: None does, or several do.
    """
    if not word:
        raise UserError("an empty id names no job", next_step="`workbench jobs` lists them")
    found = [job for job in jobs if job.id.startswith(word.lower())]
    live = [job for job in found if job.state != "ended"]
    found = live or found
    if len(found) == 1:
        return found[0]
    if not found:
        raise UserError(
            f"no job's id begins with {word!r}", next_step="`workbench jobs` lists them"
        )
    names = ", ".join(job.id[:12] for job in found[:5])
    raise UserError(
        f"{len(found)} jobs' ids begin with {word!r}: {names}", next_step="Give more of it"
    )
