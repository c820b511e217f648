"""What the Jupyter server tells a browser, beyond the `Status` and `Failure` of `messages.py`."""

from __future__ import annotations

from msgspec import Struct


class ServerHalf(Struct, frozen=True, kw_only=True):
    """Which server half answers; the page compares `protocol` with the one it was built for."""

    software: str
    protocol: int
