"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How bad it is: a note hinders nothing, a problem does."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What was looked at, in a word.
        verdict: How bad it is.
        message: What was found.
        next_step: What to do; empty where nothing is.
    """

    name: str
    verdict: Verdict
    message: str
    next_step: str = ""
