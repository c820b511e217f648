"""The home's sys.stdout and sys.stderr: unbuffered, and in order with one another.

No thread and no buffer stand behind them: the shim gathers what is written in quick succession,
and a home that is killed has lost nothing that it printed.
"""

from __future__ import annotations

import io
import sys

from workbench.agent.channels import STREAMS, Channels


class OrderedStream(io.TextIOWrapper):
    """Text to one of the shim's pipes; what waits in the other one comes first.

    Args:
        descriptor: 1 or 2.
        channels: What home and shim share.
    """

    def __init__(self, descriptor: int, channels: Channels) -> None:
        raw = io.FileIO(descriptor, "w", closefd=False)
        super().__init__(io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace")
        self._others = [other for other in STREAMS if other != descriptor]
        self._channels = channels

    def write(self, text: str) -> int:
        """Write `text` at once."""
        self._channels.settle(self._others)
        count = super().write(text)
        self.flush()
        return count


def install(channels: Channels) -> None:
    """Make them the process's standard streams."""
    sys.stdout = OrderedStream(1, channels)
    sys.stderr = OrderedStream(2, channels)
