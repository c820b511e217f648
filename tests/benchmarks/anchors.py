"""What others' simulators made of the traces, to hold ours to.

Sources:

* TIRESIAS: the simulator of Gu et al., "Tiresias" (NSDI 2019), with its `count` scheme: a pool of
  GPUs, free preemption, run times known where a policy needs them. `fifo-strict` is its `fifo`,
  `fifo` its `fjf`, `srtf` its `shortest`; `dlas` and `dlas-gpu` are least attained service by time
  and by GPU time.
* POOL: an event-driven pool of GPUs, written without knowledge of this one.
* NODES: two simulators of nodes with 8 GPUs, written without knowledge of one another, that agree.
* MURI: Muri's simulator (Zhao et al., SIGCOMM 2022), `Tiresias-L`, with its own placement.

All print means with one decimal and longest waits in whole seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.benchmarks.traces import Replays
from workbench.simulate.experiment import Placement
from workbench.simulate.metrics import Report

Quantity = Literal["mean completion", "mean wait", "longest wait"]
PRINTED_S: dict[Quantity, float] = {
    "mean completion": 0.05,
    "mean wait": 0.05,
    "longest wait": 0.5,
}
"""Half of the last printed digit."""
_ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A published figure.

    Attributes:
        trace: On the cluster of `traces.TARGETS`.
        policy: Our name for it.
        placement: As `simulate` has it.
        value_s: As it was printed.
        part: By how large a part of it we may miss it; 0 is not by a printed digit.
        source: See the module.
    """

    trace: str
    policy: str
    placement: Placement
    quantity: Quantity
    value_s: float
    part: float
    source: str

    def __str__(self) -> str:
        return f"{self.trace} {self.policy} on {self.placement}, {self.quantity}, of {self.source}"

    @property
    def tolerance_s(self) -> float:
        """By how much ours may differ."""
        return max(self.part * self.value_s, PRINTED_S[self.quantity]) + _ROUNDING_S

    def ours_s(self, replays: Replays) -> float:
        """Replay the trace and return our figure."""
        cost_s = 0.0 if self.policy == "srtf" else 60.0
        report = replays.report(self.policy, restart_cost_s=cost_s, placement=self.placement)
        return quantity_of(report, self.quantity)


def quantity_of(report: Report, quantity: Quantity) -> float:
    """Look a quantity up."""
    if quantity == "mean completion":
        return report.completion.mean
    return report.wait.mean if quantity == "mean wait" else report.wait.longest


_EXACT = ("fifo-strict", "fifo")
_PARTS = {"easy": 0.001, "sjf": 0.001, "sjf-strict": 0.001, "srtf": 0.01}
_MEANS_IN_A_POOL: dict[str, dict[str, tuple[float, str]]] = {
    "tiresias_60": {
        "fifo-strict": (1556.5, "TIRESIAS"),
        "fifo": (715.3, "TIRESIAS"),
        "srtf": (519.9, "TIRESIAS"),
    },
    "venus_vcvlY": {
        "fifo-strict": (9667.0, "TIRESIAS and POOL"),
        "fifo": (9667.0, "TIRESIAS and POOL"),
        "easy": (9667.0, "POOL"),
        "sjf-strict": (9667.0, "POOL"),
        "sjf": (9667.0, "POOL"),
        "srtf": (9658.0, "TIRESIAS"),
    },
    "venus_vcvGl": {
        "fifo-strict": (18489.5, "TIRESIAS and POOL"),
        "fifo": (4826.4, "TIRESIAS and POOL"),
        "easy": (5083.0, "POOL"),
        "sjf-strict": (5279.2, "POOL"),
        "sjf": (4813.1, "POOL"),
        "srtf": (4722.9, "TIRESIAS"),
    },
    "philly_103959": {
        "fifo-strict": (353357.5, "TIRESIAS and POOL"),
        "fifo": (176178.0, "TIRESIAS and POOL"),
        "easy": (189140.7, "POOL"),
        "sjf-strict": (68987.6, "POOL"),
        "sjf": (65031.7, "POOL"),
        "srtf": (55825.8, "TIRESIAS"),
    },
    "philly_11cb48": {
        "fifo-strict": (1636982.7, "TIRESIAS and POOL"),
        "fifo": (241075.7, "TIRESIAS and POOL"),
        "easy": (266391.0, "POOL"),
        "sjf-strict": (33470.5, "POOL"),
        "sjf": (24510.3, "POOL"),
        "srtf": (6297.6, "TIRESIAS"),
    },
}
_LONGEST_WAITS_IN_A_POOL = {
    "venus_vcvlY": {"fifo-strict": 38718, "fifo": 38718},
    "venus_vcvGl": {"fifo-strict": 153447, "fifo": 104940},
    "philly_103959": {"fifo-strict": 756540, "fifo": 710415},
    "philly_11cb48": {"fifo-strict": 4476214, "fifo": 3441261},
}
_ON_NODES: tuple[tuple[str, str, float, float], ...] = (
    ("venus_vcvGl", "fifo-strict", 18497.0, 13891.1),
    ("venus_vcvGl", "sjf-strict", 5302.7, 696.8),
    ("venus_vcvlY", "fifo-strict", 9667.0, 360.4),
)
"""Mean completion and mean wait."""

BEST_LAS_S = {
    "tiresias_60": 715.3,
    "venus_vcvlY": 9589.4,
    "venus_vcvGl": 4973.3,
    "philly_103959": 81302.5,
    "philly_11cb48": 10123.5,
    "muri_trace3": 347213.2,
}
"""Mean completion of the better of `dlas` and `dlas-gpu`, of TIRESIAS; the last is of MURI."""


def _in_a_pool(trace: str, policy: str, quantity: Quantity, value_s: float, source: str) -> Anchor:
    return Anchor(
        trace=trace,
        policy=policy,
        placement="pool",
        quantity=quantity,
        value_s=value_s,
        part=0.0 if policy in _EXACT else _PARTS[policy],
        source=source,
    )


def _on_nodes(trace: str, policy: str, quantity: Quantity, value_s: float) -> Anchor:
    return Anchor(
        trace=trace,
        policy=policy,
        placement="nodes",
        quantity=quantity,
        value_s=value_s,
        part=0.0,
        source="NODES",
    )


ANCHORS: tuple[Anchor, ...] = (
    *(
        _in_a_pool(trace, policy, "mean completion", value_s, source)
        for trace, means in _MEANS_IN_A_POOL.items()
        for policy, (value_s, source) in means.items()
    ),
    *(
        _in_a_pool(trace, policy, "longest wait", value_s, "POOL")
        for trace, waits in _LONGEST_WAITS_IN_A_POOL.items()
        for policy, value_s in waits.items()
    ),
    *(
        anchor
        for trace, policy, completion_s, wait_s in _ON_NODES
        for anchor in (
            _on_nodes(trace, policy, "mean completion", completion_s),
            _on_nodes(trace, policy, "mean wait", wait_s),
        )
    ),
)
