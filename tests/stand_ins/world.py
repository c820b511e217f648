"""The scripted world that the stand-in libraries show."""

from __future__ import annotations

import os
import uuid as uuids
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

GIB = 2**30
MIB = 2**20


class Code(IntEnum):
    """NVML's result codes that a test may script. Source: nvmlReturn_t in nvml.h."""

    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    INSUFFICIENT_SIZE = 7
    DRIVER_NOT_LOADED = 9
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    LIB_RM_VERSION_MISMATCH = 18
    UNKNOWN = 999


_RUN = uuids.uuid4()
"""GPU locks are known to the whole machine: two test runs at once must not share cards."""


@dataclass(kw_only=True)
class Gpu:
    """One scripted card.

    Attributes:
        name: Text, or bytes where the name is not valid UTF-8.
        speed: Place in CUDA's "fastest first" order; the greater, the earlier.
        hidden: The card is neither counted nor has it an index.
        processes: (pid, bytes); None bytes is NVML's "not available", 2**64-1.
        slices: (uuid, total bytes, used bytes) of the MIG slices.
        errors: NVML function, or "*" for all, to the code that it answers.
    """

    uuid: str
    name: str | bytes
    memory_bytes: int
    bus: str
    used_bytes: int = 2 * MIB
    reserved_bytes: int = 0
    util_pct: int = 0
    speed: int = 0
    hidden: bool = False
    mig: bool = False
    slices: list[tuple[str, int, int]] = field(default_factory=list)
    processes: list[tuple[int, int | None]] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The facts that the script states of this card."""
        name = self.name if isinstance(self.name, bytes) else self.name.encode()
        escaped = "".join(chr(b) if 32 < b < 127 and b != 37 else f"%{b:02X}" for b in name)
        facts = [
            f"uuid {self.uuid}",
            f"name {escaped}",
            f"bus {self.bus}",
            f"total {self.memory_bytes}",
            f"used {self.used_bytes}",
            f"reserved {self.reserved_bytes}",
            f"util {self.util_pct} {self.util_pct}",
            f"speed {self.speed}",
            f"hidden {int(self.hidden)}",
            f"mig {int(self.mig)}",
        ]
        facts += [
            f"process {pid} {'unknown' if used is None else used}" for pid, used in self.processes
        ]
        facts += [f"slice {uuid} {total} {used}" for uuid, total, used in self.slices]
        facts += [f"error {function} {int(code)}" for function, code in self.errors.items()]
        return facts


class StubWorld:
    """Writes the script, and says how a child comes to live in the world it describes.

    The environment must be set when the child starts: a library path changed later has no effect.
    """

    def __init__(self, libraries: Path, script: Path) -> None:
        self.libraries = libraries
        self.script = script
        self.cards: list[Gpu] = []
        self.errors: dict[str, int] = {}
        self.latencies_ms: dict[str, int] = {}
        self.fastest_first = False
        self.write()

    @property
    def env(self) -> dict[str, str]:
        """What to add to a child's environment."""
        path = [str(self.libraries), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        return {"LD_LIBRARY_PATH": ":".join(path), "NVML_STUB_SCRIPT": str(self.script)}

    @property
    def uuids(self) -> list[str]:
        """UUIDs in the order of the PCI bus, hidden cards included."""
        return [card.uuid for card in self.cards]

    def gpus(
        self,
        count: int,
        *,
        model: str | bytes = "NVIDIA A100-SXM4-80GB",
        memory_bytes: int = 80 * GIB,
    ) -> list[str]:
        """Have this many equal idle cards and no others; returns their UUIDs."""
        self.cards = [
            Gpu(
                uuid=f"GPU-{uuids.uuid5(_RUN, str(slot))}",
                name=model,
                memory_bytes=memory_bytes,
                bus=f"00000000:{slot + 1:02X}:00.0",
            )
            for slot in range(count)
        ]
        self.write()
        return self.uuids

    def card(self, uuid: str) -> Gpu:
        """The card with this UUID, to change and then `write`."""
        return next(card for card in self.cards if card.uuid == uuid)

    def set(self, uuid: str, **facts: object) -> None:
        """Change facts of a card (attributes of `Gpu`) and write."""
        card = self.card(uuid)
        for name, value in facts.items():
            if not hasattr(card, name):
                msg = f"a scripted card has no {name!r}"
                raise AttributeError(msg)
            setattr(card, name, value)
        self.write()

    def lose(self, uuid: str) -> None:
        """Let every call on this card answer GPU_IS_LOST."""
        self.set(uuid, errors={"*": Code.GPU_IS_LOST})

    def fail(self, function: str, code: int) -> None:
        """Let an NVML function ("*" for all of them, on all cards) answer this code."""
        self.errors[function] = code
        self.write()

    def delay(self, function: str, milliseconds: int) -> None:
        """Let an NVML function take this long; 0 ends a wait that is going on."""
        self.latencies_ms[function] = milliseconds
        self.write()

    def heal(self) -> None:
        """Take back all errors and delays, keeping the cards."""
        self.errors.clear()
        self.latencies_ms.clear()
        for card in self.cards:
            card.errors = {}
        self.write()

    def write(self) -> None:
        """Put the present facts before the libraries, in one step."""
        lines = ["order fastest" if self.fastest_first else "order pci"]
        lines += [f"error {function} {int(code)}" for function, code in self.errors.items()]
        lines += [f"latency_ms {function} {ms}" for function, ms in self.latencies_ms.items()]
        lines += [f"gpu {n} {fact}" for n, card in enumerate(self.cards) for fact in card.lines()]
        fresh = self.script.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        fresh.replace(self.script)
