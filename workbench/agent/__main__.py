"""`python -m workbench.agent`: started by the launcher, which leaves its socket at descriptor 3."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from workbench.agent.agent import Agent
from workbench.agent.launcher import CHILD_LOCK, CHILD_SOCKET
from workbench.agent.launcher_link import open_link
from workbench.agent.options import Options, parse_options
from workbench.core.errors import WorkbenchError


async def _run(options: Options) -> None:
    agent = Agent(await open_link(CHILD_SOCKET), options)
    await agent.run()


def main() -> int:
    """Run the agent; 0 where it is not wanted any more, so that it is not started again."""
    options = parse_options(sys.argv[1:])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        os.set_inheritable(CHILD_LOCK, False)  # noqa: FBT003  (the standard library's)
        asyncio.run(_run(options))
    except (WorkbenchError, OSError) as error:
        print(f"the agent cannot run: {error}", file=sys.stderr)  # noqa: T201  (the launcher's log)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
