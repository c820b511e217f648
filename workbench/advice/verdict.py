"""The verdict on a cell: CPU or GPU, how many, why, and how sure."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from workbench.advice.workload import ALWAYS_GPU, CPU_LIBRARIES, GPU_LIBRARIES, Workload, workload
from workbench.protocol.quantities import format_bytes
from workbench.protocol.telemetry import Sample, SampleStatus

SMALL_DATA_BYTES: Final = 64 * 2**20
"""Below this, published comparisons favour the CPU: launches and transfers cost more than they save
(MNIST perceptrons, small regressions and small frames; see docs/advice.md for the list)."""
SMALL_PARAMETERS: Final = 1_000_000
"""Weights below which a training step is bound by launches rather than by arithmetic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Where a cell should run.

    Attributes:
        device: `cpu` or `gpu`.
        gpus: GPUs to ask for; 0 on the CPU.
        reason: One sentence.
        confidence: `high` where a rule decides, `low` where a size was guessed from inputs alone.
    """

    device: Literal["cpu", "gpu"]
    gpus: int
    reason: str
    confidence: Literal["high", "medium", "low"]

    @property
    def text(self) -> str:
        """The advice in one line."""
        where = "CPU" if self.device == "cpu" else f"{self.gpus} GPU"
        return f"{where}: {self.reason} (confidence: {self.confidence})"


def advise(
    tree: ast.AST,
    namespace: Mapping[str, Any],
    sample: Sample | None,
    *,
    device: str = "auto",
) -> Advice:
    """Say where a cell should run, from its code, its inputs' sizes and the host. Runs nothing.

    Args:
        tree: The parsed cell.
        namespace: The notebook's names, only looked at.
        sample: The host's latest sample; None while unknown.
        device: What the user asked for; `cpu` and `gpu` are obeyed and said so.
    """
    if device == "gpu":
        return Advice(device="gpu", gpus=1, reason="asked for: --device gpu", confidence="high")
    if device == "cpu":
        return Advice(device="cpu", gpus=0, reason="asked for: --device cpu", confidence="high")
    found = workload(tree, namespace)
    able = [name for name in GPU_LIBRARIES if name in found.libraries]
    if not able:
        return _cannot_use(found)
    if not (found.asks_for_device or ALWAYS_GPU & set(able)):
        return Advice(
            device="cpu",
            gpus=0,
            reason=f"the code uses {', '.join(able)} but never names a device, so a GPU would stay "
            "idle; use `.to(workbench.device())` to let it run on either",
            confidence="high",
        )
    if sample is None or not _has_gpu(sample):
        return _without_gpu(able, sample)
    return _by_size(found, able)


def _cannot_use(found: Workload) -> Advice:
    used = [name for name in CPU_LIBRARIES if name in found.libraries]
    what = ", ".join(used) if used else "plain Python"
    return Advice(
        device="cpu",
        gpus=0,
        reason=f"nothing in this cell can use a GPU ({what})",
        confidence="high",
    )


def _without_gpu(able: Sequence[str], sample: Sample | None) -> Advice:
    if sample is None:
        reason = "the host's devices are not known yet"
        return Advice(device="cpu", gpus=0, reason=reason, confidence="low")
    none = "none"
    if any(one.simulated for one in sample.devices):
        none = "none but SIMULATED ones, which --device gpu takes"
    reason = f"the code could use a GPU ({', '.join(able)}), but this host has {none}"
    return Advice(device="cpu", gpus=0, reason=reason, confidence="high")


def _has_gpu(sample: Sample) -> bool:
    """Whether a real GPU answers; a simulated one is never chosen by itself."""
    return any(one.status == SampleStatus.OK and not one.simulated for one in sample.devices)


def _by_size(found: Workload, able: Sequence[str]) -> Advice:
    sizes = f"{format_bytes(found.data_bytes)} of input"
    if found.parameters:
        sizes += f", {found.parameters:,} parameters"
    if ALWAYS_GPU & set(able):
        return Advice(
            device="gpu",
            gpus=1,
            reason=f"{', '.join(sorted(ALWAYS_GPU & set(able)))} runs on a GPU only ({sizes})",
            confidence="high",
        )
    if found.data_bytes < SMALL_DATA_BYTES and found.parameters < SMALL_PARAMETERS:
        return Advice(
            device="cpu",
            gpus=0,
            reason=f"small ({sizes}): launches and transfers would cost more than a GPU saves",
            confidence="medium",
        )
    return Advice(
        device="gpu",
        gpus=1,
        reason=f"{', '.join(able)} code that names a device, {sizes}",
        confidence="low",
    )
