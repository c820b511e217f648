"""Entries and snapshots as JSON: the class's name, and its fields by name.

A field that is added to an event or decision needs a default, so that older journals load. A
change that an older version would misread (a new class, a field that must not be ignored) raises
`FORMAT`.
"""

from __future__ import annotations

from bisect import insort
from typing import Final, get_args

import msgspec

from workbench.core import fairness, quotas
from workbench.core.decisions import Decision
from workbench.core.events import Event
from workbench.core.job import crossing_of
from workbench.core.state import State

FORMAT: Final = 3
"""The format that this version writes; it reads this one and all before."""

_CLASSES: Final[dict[str, type[Event | Decision]]] = {
    cls.__name__: cls for cls in (*get_args(Event), *get_args(Decision))
}


def encode(entry: Event | Decision) -> tuple[str, bytes]:
    """Encodes an entry.

    Args:
        entry: An event or a decision.

    Returns:
        The name of its class, and its fields.
    """
    return type(entry).__name__, msgspec.json.encode(entry)


def decode(kind: str, body: bytes) -> Event | Decision:
    """Decodes an entry.

    Args:
        kind: The name of its class.
        body: Its fields.

    Returns:
        An entry equal to the one that was encoded.

    Raises:
        KeyError: This version has no such class.
        msgspec.DecodeError: The fields are damaged.
    """
    entry: Event | Decision = msgspec.json.decode(body, type=_CLASSES[kind])
    return entry


def encode_state(state: State) -> bytes:
    """Encodes a snapshot.

    Args:
        state: The state; it is not changed.

    Returns:
        Its fields.
    """
    return msgspec.json.encode(state)


def decode_state(body: bytes) -> State:
    """Decodes a snapshot.

    Args:
        body: Its fields.

    Returns:
        A state equal to the one that was encoded.

    Raises:
        msgspec.DecodeError: The fields are damaged.
    """
    if b'"crossings"' not in body:
        state = _from_format_1(body)
    else:
        state = msgspec.json.decode(body, type=State)
    if b'"users"' not in body:
        _tally(state)
    return state


def _tally(state: State) -> None:
    """Adds what users hold, which no version before format 3 kept."""
    for job in state.jobs.values():
        if job.grant is not None:
            quotas.charge(state, job, job.grant.at, job.grant.units, is_over=False)


def _from_format_1(body: bytes) -> State:
    """Reads a snapshot of a version that knew neither preemption nor what jobs had used."""
    raw = msgspec.json.decode(body)
    for job in [*raw["jobs"].values(), *raw["ended"].values()]:
        job["queued_at"] = job["entered_at"] = job["submitted_at"]
    state = msgspec.json.decode(msgspec.json.encode(raw), type=State)
    for job in state.jobs.values():
        if (crossing := crossing_of(job)) is not None:
            insort(state.crossings, crossing)
        if job.grant is not None:
            fairness.charge(state, job.owner, job.grant.at, fairness.weight(state, job.grant.units))
    return state
