"""Output lines never mix, and a full disk costs output but not the job's ending."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.lab import MakeLab
from workbench.agent.output import OutputLog

FULL = """
import resource, sys
from pathlib import Path
from workbench.agent.output import OutputLog
log = OutputLog(Path(sys.argv[1]), Path("/nowhere"))
log.append("stream", name="stdout", text="whole")
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (80, hard))
for _ in range(3):
    log.append("stream", name="stdout", text="x" * 100)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
log.append("stream", name="stdout", text="again")
"""


def test_what_a_full_disk_loses_is_counted_and_later_lines_are_whole(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], check=True)
    whole, torn, *rest = (tmp_path / "output.jsonl").read_bytes().splitlines()
    assert json.loads(whole)["text"] == "whole"
    assert len(torn) == 80 - len(whole) - 1
    texts = [json.loads(line)["text"] for line in rest]
    assert "3 pieces of output are lost" in texts[0]
    assert texts[1:] == ["again"]


def test_each_append_rings_and_nobody_need_listen(tmp_path: Path) -> None:
    bell = tmp_path / "bell"
    log = OutputLog(tmp_path, bell)
    log.append("stream", name="stdout", text="silent")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(bell))
        for _ in range(1000):  # Far more than the socket's queue holds; nothing waits.
            log.append("stream", name="stdout", text="loud")
        assert json.loads(listener.recv(1000)) == {"job": tmp_path.name}
    log._bell.close()


@pytest.mark.asyncio
async def test_a_disk_that_stays_full_does_not_lose_the_ending(make_lab: MakeLab) -> None:
    lab = await make_lab()
    # As in a full disk, every attempt to write the ending fails.
    source = """
import os
job = os.environ["GPU_WORKBENCH_LEASE"].rstrip(".").rpartition("/")[2]
os.symlink("/dev/full", f"{jobs}/{job}/ended.json.tmp")
"""
    job = await lab.stage(source, jobs=str(lab.jobs))
    lease = await lab.controller.grant(job)
    assert (await lab.controller.over(lease)).outcome == "done"
    assert lab.ran(job).ended() is None
