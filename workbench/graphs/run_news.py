"""Workers as a run sees them: those that were started, and what becomes of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Crew(Protocol):
    """Workers of one kind that wait to be called: `engines.gate.Gate`."""

    count: int

    def fileno(self) -> int:
        """Return a descriptor that shows an error when the last of them is gone."""

    def open(self) -> None:
        """Call them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A call returned; what it returned is not fetched."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broke:
    """A call raised, which the user's code cannot cause."""

    key: str
    error: BaseException


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The worker died in the middle of a call.

    Attributes:
        worker: Its name, or its address where the name is not known any more.
    """

    key: str
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deserted:
    """The last worker of a kind is gone, and with it what it was to run."""

    gpu: bool


News = Done | Broke | Lost | Deserted
