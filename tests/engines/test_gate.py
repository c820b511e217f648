from __future__ import annotations

import os
import subprocess
import sys

from workbench.engines.gate import Gate

WAIT = "import os, sys; sys.stdout.write(repr(os.read(int(sys.argv[1]), 1)))"


def wait_at(gate: Gate) -> subprocess.Popen[str]:
    """Have a process wait at the gate as a worker does."""
    read = gate._read
    argv = [sys.executable, "-c", WAIT, str(read)]
    return subprocess.Popen(argv, pass_fds=[read], stdout=subprocess.PIPE, text=True)


def test_an_open_gate_lets_every_worker_through() -> None:
    gate = Gate(2)
    workers = [wait_at(gate), wait_at(gate)]
    gate.keep_home_side()
    gate.open()
    assert [worker.communicate()[0] for worker in workers] == ["b'\\x00'", "b'\\x00'"]
    os.close(gate.fileno())


def test_a_worker_learns_that_nobody_will_open() -> None:
    gate = Gate(1)
    worker = wait_at(gate)
    gate.close()
    assert worker.communicate()[0] == "b''"


def test_the_home_may_open_a_gate_that_nobody_stands_at() -> None:
    gate = Gate(1)
    gate.keep_home_side()
    gate.open()
    os.close(gate.fileno())
