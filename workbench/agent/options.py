"""The agent's settings, as command line options of launcher and agent."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How long the agent waits for what.

    Attributes:
        grace_s: Between TERM and KILL when a job is ended.
        kernel_gone_s: With neither kernel nor job, a session's zygote is ended after so long.
        reattach_s: A kernel session may be away for so long; then its jobs are cancelled.
        staged_s: A job that the controller does not know is kept for so long.
        idle_s: With neither session nor job, the agent ends after so long.
        keep_s: What is left of an ended job is kept for so long; of a detached one ten times so.
        fetch_s: What is left of an ended job is kept at least for so long, to be fetched.
        keep_jobs: So many ended jobs are kept at most, the latest; of detached ones as many more.
        look_s: Between two rounds of looking after all this.
        poll_s: Between two looks at the output of followed jobs, beside the doorbell.
    """

    grace_s: float = 5.0
    kernel_gone_s: float = 30.0
    reattach_s: float = 600.0
    staged_s: float = 600.0
    idle_s: float = 600.0
    keep_s: float = 86400.0
    fetch_s: float = 120.0
    keep_jobs: int = 50
    look_s: float = 15.0
    poll_s: float = 1.0


def parse_options(arguments: Sequence[str]) -> Options:
    """Return the settings in `arguments`, `--grace-s 5` and so on."""
    parser = argparse.ArgumentParser(prog="python -m workbench.agent.launcher")
    for one in fields(Options):
        parser.add_argument(
            f"--{one.name.replace('_', '-')}", type=type(one.default), default=one.default
        )
    return Options(**vars(parser.parse_args(arguments)))
