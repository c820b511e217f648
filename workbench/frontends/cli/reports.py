"""Simulations as text of at most 80 columns. Seconds have one decimal, as published tables do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from workbench.frontends.cli.tables import wrapped
from workbench.protocol.quantities import format_seconds
from workbench.protocol.text import visible

if TYPE_CHECKING:
    from workbench.simulate.experiment import Result, Settings
    from workbench.simulate.metrics import Report, Spread, UserReport
    from workbench.simulate.workload import Cluster, Trace

_SPREAD: Final = "{:<12}{:>13}{:>13}{:>13}{:>13}{:>13}"
_USER: Final = "{:<20}{:>7}{:>13}{:>13}{:>10}{:>10}"
_ROW: Final = "{:<12}{:>12}{:>10}{:>10}{:>10}{:>10}{:>4}{:>6}{:>5}"
_WORDS: Final = (
    "slowdown: completion over service, which counts as 10 s at least; share: what a user's jobs "
    "got of the GPU time that they asked for while they waited or ran"
)
_MOST_USERS: Final = 15
_NAME: Final = 18
_POLICY: Final = 11
_WIDE_S: Final = 1e6


def head_lines(trace: Trace, cluster: Cluster, settings: Settings) -> list[str]:
    """Return what was replayed, how, and what was not."""
    fair_share = "on" if settings.fair_share else "off"
    about = (
        f"{trace.workload.name}: {len(trace.workload.jobs):,} jobs on {cluster} GPUs, placement "
        f"{settings.placement}, fair share {fair_share}, "
        f"{settings.restart_cost_s:g} s for each preemption"
    )
    lines = wrapped("", about)
    for one in trace.left_out:
        lines += wrapped("! ", f"left out: {one.jobs:,} job{_s(one.jobs)} {one.reason}")
    return [*lines, ""]


def report_lines(result: Result) -> list[str]:
    """Return all there is to say of one policy."""
    report = result.report
    lines = [_SPREAD.format(result.policy[:_POLICY], "mean", "p50", "p95", "p99", "longest")]
    lines += [
        _spread("completion s", report.completion, ",.1f"),
        _spread("wait s", report.wait, ",.1f"),
        _spread("slowdown", report.bounded_slowdown, ",.2f"),
        "",
    ]
    lines += [f"{what:<13} {value}" for what, value in _single_figures(report)]
    lines += _user_lines(report)
    return [*lines, "", *wrapped("", _WORDS if report.users else _WORDS.partition(";")[0])]


def _spread(what: str, spread: Spread, form: str) -> str:
    values = (spread.mean, spread.p50, spread.p95, spread.p99, spread.longest)
    return _SPREAD.format(what, *(format(value, form) for value in values))


def _single_figures(report: Report) -> list[tuple[str, str]]:
    speed = report.events_per_s
    return [
        ("makespan", f"{report.makespan_s:,.1f} s ({format_seconds(report.makespan_s)})"),
        ("utilisation", _percent(report.utilisation)),
        ("preemptions", _preemptions(report)),
        ("lost work", f"{report.lost_work_s:,.1f} s"),
        (
            "fairness",
            "unknown: the trace names no users"
            if report.jain is None
            else f"{report.jain:.4f} (Jain's index over {len(report.users)} users)",
        ),
        ("speed", "too short to tell" if speed is None else f"{speed:,.0f} events a second"),
    ]


def _preemptions(report: Report) -> str:
    """Count milder steps beside the stops, where there were any."""
    milder = {"shrinks": report.shrinks, "suspensions": report.suspensions}
    counts = [f"{number:,} {name}" for name, number in milder.items() if number]
    return ", ".join([f"{report.preemptions:,}", *counts])


def _user_lines(report: Report) -> list[str]:
    if not report.users:
        return []
    ranked = sorted(report.users, key=lambda user: (-user.gpu_s, user.user))
    lines = ["", _USER.format("user", "jobs", "GPU hours", "mean wait s", "slowdown", "share")]
    lines += [_user(user) for user in ranked[:_MOST_USERS]]
    more = len(ranked) - _MOST_USERS
    return [*lines, f"and {more:,} more: --json has all"] if more > 0 else lines


def _user(user: UserReport) -> str:
    return _USER.format(
        _short(user.user, _NAME),
        f"{user.jobs:,}",
        f"{user.gpu_s / 3600:,.1f}",
        f"{user.mean_wait_s:,.1f}",
        f"{user.mean_bounded_slowdown:,.2f}",
        f"{user.share:.3f}",
    )


def comparison_lines(results: Sequence[Result]) -> list[str]:
    """Return one table: a row for each policy, completion in seconds but where it says wait."""
    head = ("policy", "mean s", "p95 s", "p99 s", "mean wait", "longest", "use", "stops", "fair")
    return [
        _ROW.format(*head),
        *(_row(result) for result in results),
        "",
        *wrapped(
            "",
            "longest: the longest wait; use: GPU time held of what there was, in %; "
            "stops: preemptions; fair: Jain's index over users",
        ),
    ]


def _row(result: Result) -> str:
    report = result.report
    return _ROW.format(
        _short(result.policy, _POLICY),
        _seconds(report.completion.mean),
        f"{report.completion.p95:,.0f}",
        f"{report.completion.p99:,.0f}",
        _seconds(report.wait.mean),
        f"{report.wait.longest:,.0f}",
        "n/a" if report.utilisation is None else f"{100 * report.utilisation:.0f}",
        f"{report.preemptions}",
        "n/a" if report.jain is None else f"{report.jain:.2f}",
    )


def _seconds(seconds: float) -> str:
    """Leave out the decimal where the column would be too narrow for it."""
    return f"{seconds:,.1f}" if seconds < _WIDE_S else f"{seconds:,.0f}"


def _percent(share: float | None) -> str:
    return "unknown: nothing took any time" if share is None else f"{100 * share:.1f} %"


def _short(text: str, width: int) -> str:
    text = visible(text)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
