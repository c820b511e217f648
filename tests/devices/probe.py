"""Run in a child: reads the NVML source whenever told to, at the time it is told.

A line on stdin is the monotonic time in seconds; the answer is one line of JSON, a `SourceReading`.
The log goes to stderr.
"""

from __future__ import annotations

import logging
import sys

import msgspec

from workbench.devices.nvml_source import NvmlSource


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    now_s = 0.0
    source = NvmlSource(monotonic=lambda: now_s)
    for line in sys.stdin:
        now_s = float(line)
        sys.stdout.buffer.write(msgspec.json.encode(source.read()) + b"\n")
        sys.stdout.flush()
    source.close()


if __name__ == "__main__":
    main()
