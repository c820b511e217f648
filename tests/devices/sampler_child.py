"""Run in a child: samples the scripted world and prints each sample as a line of JSON.

It stops when stdin ends.
"""

from __future__ import annotations

import logging
import sys

import msgspec

from workbench.devices.nvml_source import NvmlSource
from workbench.devices.sampler import Sampler
from workbench.protocol.telemetry import Sample


def show(sample: Sample) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(sample) + b"\n")
    sys.stdout.flush()


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sampler = Sampler([NvmlSource()], on_sample=show, interval_s=0.0)
    sampler.start()
    sys.stdin.read()
    sampler.stop()


if __name__ == "__main__":
    main()
