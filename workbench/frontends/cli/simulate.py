"""`workbench simulate TRACE`: what a trace would have been under a policy, or under several."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from workbench.client import UserError
from workbench.frontends.cli.printing import print_lines
from workbench.frontends.cli.reports import comparison_lines, head_lines, report_lines
from workbench.protocol.quantities import parse_seconds

if TYPE_CHECKING:
    from workbench.simulate.experiment import Result, Settings
    from workbench.simulate.workload import Cluster, Trace

JOURNAL: Final = "journal"
_DEFAULT: Final = "default"
_MOST_RESTART_COST_S: Final = 1e9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the trace, the cluster and how it is replayed."""
    parser.add_argument(
        "trace",
        metavar="TRACE",
        help="a CSV, a file in the Standard Workload Format, a journal, or the word journal for "
        "that of your own lab",
    )
    parser.add_argument(
        "--cluster",
        metavar="NxG",
        help="N nodes with G GPUs each, such as 20x8; a journal's own where it is left out",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--policy", metavar="P", default=_DEFAULT, help="which policy (default: the lab's default)"
    )
    what.add_argument("--compare", metavar="P,P,…", help="several policies, in one table")
    parser.add_argument(
        "--restart-cost",
        metavar="S",
        type=float,
        default=60.0,
        help="seconds that each preemption costs (default: 60)",
    )
    parser.add_argument(
        "--placement",
        choices=["pool", "nodes"],
        default="nodes",
        help="nodes (default): a gang that fits on one node is never spread; pool: any GPU will do",
    )
    parser.add_argument(
        "--fair-share",
        choices=["on", "off"],
        default="on",
        help="whether users who had much of late stand back (default: on)",
    )
    parser.add_argument(
        "--last", metavar="T", help="only the jobs submitted in the trace's last T, such as 30d"
    )
    parser.add_argument("--plot", metavar="FILE", type=Path, help="write a Gantt chart as HTML")


async def run(options: argparse.Namespace) -> int:
    """Replay the trace and show what came of it.

    Raises:
        UserError: The trace, the cluster or a policy's name cannot be understood.
        PeerError: The journal cannot be read.
    """
    from workbench.simulate.experiment import compare

    # Nothing here awaits, so asyncio's own handler would never get to stop it.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if options.compare and options.plot:
        raise UserError(
            "--plot draws one policy, and --compare runs several",
            next_step="Leave one of them out",
        )
    settings = _settings(options)
    names = [name.strip() for name in (options.compare or options.policy).split(",")]
    trace, cluster = _read(options)
    results = compare(trace.workload, cluster, names, settings)
    if options.plot:
        _plot(options.plot, results[0], trace, cluster)
    if options.json:
        said = _as_json(results, trace, cluster, settings, is_table=bool(options.compare))
        print(msgspec.json.encode(said).decode())
        return 0
    print_lines(head_lines(trace, cluster, settings))
    if options.compare:
        print_lines(comparison_lines(results))
    else:
        print_lines(report_lines(results[0]))
    if options.plot:
        print_lines([f"chart: {options.plot}"])
    return 0


def _settings(options: argparse.Namespace) -> Settings:
    from workbench.simulate.experiment import Settings

    cost_s: float = options.restart_cost
    if not 0 <= cost_s <= _MOST_RESTART_COST_S:
        raise UserError(
            f"--restart-cost {cost_s:g} is not a time: seconds, at least 0",
            next_step="Write for example --restart-cost 60",
        )
    return Settings(
        placement=options.placement,
        fair_share=options.fair_share == "on",
        restart_cost_s=cost_s,
    )


def _read(options: argparse.Namespace) -> tuple[Trace, Cluster]:
    """Return the trace, without what does not fit, and the cluster."""
    from workbench.simulate.history import own_journal
    from workbench.simulate.traces import read_trace
    from workbench.simulate.workload import Cluster

    cluster = None if options.cluster is None else Cluster.parse(options.cluster)
    last_s = None if options.last is None else parse_seconds(options.last, "--last")
    trace = read_trace(own_journal() if options.trace == JOURNAL else Path(options.trace))
    cluster = cluster or trace.cluster
    if cluster is None:
        raise UserError(
            f"{options.trace} does not say what it ran on",
            next_step="Give the cluster, for example --cluster 20x8: 20 nodes with 8 GPUs each",
        )
    if last_s is not None:
        trace = trace.latest(last_s)
    return trace.fitting(cluster), cluster


def _plot(path: Path, result: Result, trace: Trace, cluster: Cluster) -> None:
    from workbench.simulate.plot import write_plot

    write_plot(
        path,
        result.records,
        title=f"{trace.workload.name} under {result.policy}",
        note=f"Simulated: {result.report.jobs:,} jobs on {cluster} GPUs; mean completion "
        f"{result.report.completion.mean:,.1f} s, longest wait {result.report.wait.longest:,.1f} s",
    )


def _as_json(
    results: Sequence[Result], trace: Trace, cluster: Cluster, settings: Settings, *, is_table: bool
) -> dict[str, object]:
    about: dict[str, object] = {
        "trace": trace.workload.name,
        "cluster": str(cluster),
        **asdict(settings),
        "left_out": [asdict(one) for one in trace.left_out],
    }
    rows = [{"policy": result.policy, **result.report.as_row()} for result in results]
    return {**about, "policies": rows} if is_table else {**about, **rows[0]}
