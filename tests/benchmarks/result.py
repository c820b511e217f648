"""What a benchmark prints: a line for each check, and a JSON object as the last line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One comparison.

    Attributes:
        ours: With Workbench, in `unit`.
        peer: The best other way to the same end, in `unit`.
        ratio: `ours / peer`, unless the benchmark's docstring says otherwise; less is better.
        target: The most that `ratio` may be; None where it is only reported.
    """

    name: str
    ours: float
    peer: float
    unit: str
    ratio: float
    target: float | None

    @property
    def holds(self) -> bool:
        """Whether the target is met; a check without one always holds."""
        return self.target is None or self.ratio <= self.target

    def __str__(self) -> str:
        verdict = "reported"
        if self.target is not None:
            verdict = f"at most {self.target:g}: {'holds' if self.holds else 'MISSED'}"
        return (
            f"{self.name}: {self.ours:g} {self.unit} against {self.peer:g} {self.unit}, "
            f"ratio {self.ratio:g} ({verdict})"
        )


def compared(
    name: str,
    pairs: Sequence[tuple[float, float]],
    *,
    unit: str,
    target: float | None = None,
    ratio: Callable[[float, float], float] = lambda ours, peer: ours / peer,
) -> Check:
    """Compare the medians of what was measured by turns: ours, then the other."""
    ours, peer = (median(values) for values in zip(*pairs, strict=True))
    return Check(
        name=name,
        ours=round(ours, 4),
        peer=round(peer, 4),
        unit=unit,
        ratio=round(ratio(ours, peer), 3),
        target=target,
    )


def report(name: str, checks: Sequence[Check]) -> int:
    """Print them all and return the exit code: 1 where one does not hold."""
    for check in checks:
        print(check)
    holds = all(check.holds for check in checks)
    result = {
        "name": name,
        "ratio": checks[0].ratio,
        "target": checks[0].target,
        "holds": holds,
        "checks": [{**asdict(check), "holds": check.holds} for check in checks],
    }
    print(json.dumps(result))
    return 0 if holds else 1
