from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.stand_ins.world import StubWorld
from workbench.devices.source import SourceReading
from workbench.protocol.telemetry import DeviceSample

ROOT = Path(__file__).parents[2]


class Probe:
    """A live child that reads the scripted world through the real nvidia-ml-py."""

    def __init__(self, env: dict[str, str]) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.devices.probe"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | env,
            cwd=ROOT,
        )
        self._now_s = 0.0

    def read(self, after_s: float = 1.0) -> SourceReading:
        """One reading, this many seconds of the child's clock after the one before."""
        assert self._child.stdin
        assert self._child.stdout
        self._now_s += after_s
        self._child.stdin.write(f"{self._now_s}\n".encode())
        self._child.stdin.flush()
        return msgspec.json.decode(self._child.stdout.readline(), type=SourceReading)

    def devices(self, after_s: float = 1.0) -> dict[str, DeviceSample]:
        """One reading, keyed by UUID, in the order of the reading."""
        return {device.uuid: device for device in self.read(after_s).devices}

    def log_lines(self) -> list[str]:
        """End the child and return what it logged."""
        _, stderr = self._child.communicate()
        assert self._child.returncode == 0, stderr.decode()
        return stderr.decode().splitlines()

    def end(self) -> None:
        if self._child.returncode is None:
            self._child.kill()
            self._child.communicate()


class ProbeStarter:
    """Starts probes and ends them with the test."""

    def __init__(self) -> None:
        self.started: list[Probe] = []

    def __call__(self, world: StubWorld, **env: str) -> Probe:
        probe = Probe(world.env | env)
        self.started.append(probe)
        return probe


@pytest.fixture
def start_probe() -> Iterator[ProbeStarter]:
    starter = ProbeStarter()
    yield starter
    for probe in starter.started:
        probe.end()
