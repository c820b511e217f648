"""`make bench-policy`: whether the simulator is right, and how good the default policy is.

For each trace, a table of all policies: mean completion and longest wait, over the best that others
report and over those of `fifo-strict`; then the ratios of all traces in one table, in Markdown, which
is that of docs/policies.md. Then checks. The default policy, told no run times, each
preemption charged 60 s, on a pool of GPUs without fair share, is held to two targets:

* Its mean completion is at most that of the better of `dlas` and `dlas-gpu` of the Tiresias
  simulator, in which preemption is free.
* Its longest wait is at most 1.25 times that under `fifo-strict`.

With fair share, on jobs of two virtual clusters, it is fairer over users than `fifo` and `las`:
there `ratio` is Jain's index of the fairer of these over that of the default.

For anchors, published figures that the simulator has to reproduce, `ratio` is the difference as a
part of what is allowed: half of the last printed digit, or 0.1 % or 1 %.

`ARGS=--held-out` prints another table instead: traces cut in halves, squeezed and stretched, and
made ones, over the SRTF oracle. `ARGS="--traces a,b"` looks at these alone. The last line is JSON;
its `ratio` and `target` are those of the first check.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from tests.benchmarks import held_out
from tests.benchmarks.anchors import ANCHORS, BEST_LAS_S
from tests.benchmarks.result import Check, report
from tests.benchmarks.traces import LARGER, TARGETS, USERS, Known, Replays, given, workload_of
from workbench.policies import DEFAULT_POLICY, POLICIES
from workbench.simulate.experiment import Settings, try_policy
from workbench.simulate.metrics import Record, jain, report_on
from workbench.simulate.workload import Cluster, Workload

MEAN_TARGET = 1.0
LONGEST_TARGET = 1.25
FAIRNESS_TARGET = 1.0
GROUPS = {"vcvGl": "20x8", "vcvlY": "2x8"}
"""The two virtual clusters of the trace with users."""


def main() -> int:
    """Replay, print, and return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--held-out", action="store_true", help="made and changed traces instead")
    parser.add_argument("--traces", metavar="A,B", help="only these")
    options = parser.parse_args()
    names = options.traces.split(",") if options.traces else None
    unknown = {*(names or ())} - {USERS, *(one.name for one in (*TARGETS, *LARGER))}
    if unknown:
        parser.error(f"no trace is called {', '.join(sorted(unknown))}")
    known = [one for one in (*TARGETS, *LARGER) if names is None or one.name in names]
    if options.held_out:
        held_out.show(given(known))
        return 0
    targets: list[Check] = []
    larger: list[Check] = []
    fidelity: list[Check] = []
    summary = {policy: f"`{policy}`" for policy in POLICIES}
    head = "policy"
    for one, workload in given(known):
        replays = Replays(workload, one.cluster)
        if one in TARGETS:
            fidelity += _fidelity(one, replays)
        head += f" | {one.name}"
        for policy, ratios in _frontier(one, replays).items():
            summary[policy] += f" | {ratios}"
        (targets if one in TARGETS else larger).extend(_default(one, replays))
    print("", f"| {head} |", "|---" * (head.count("|") + 1) + "|", sep="\n")
    for row in summary.values():
        print(f"| {row} |")
    fairness = [] if names and USERS not in names else _fairness()
    checks = [*targets, *fairness, *larger, *fidelity]
    if not checks:
        parser.error("none of these traces is given")
    return report("bench-policy", checks)


def _fidelity(known: Known, replays: Replays) -> list[Check]:
    checks = []
    for anchor in ANCHORS:
        if anchor.trace != known.name:
            continue
        ours_s = anchor.ours_s(replays)
        checks.append(
            Check(
                name=str(anchor),
                ours=round(ours_s, 1),
                peer=anchor.value_s,
                unit="s",
                ratio=round(abs(ours_s - anchor.value_s) / anchor.tolerance_s, 3),
                target=1.0,
            )
        )
    return checks


def _reference(known: Known, replays: Replays) -> tuple[float, str]:
    """Say what the mean completion is compared with: the best of others, or greedy FIFO's."""
    best_las_s = BEST_LAS_S.get(known.name)
    if best_las_s is not None:
        is_tiresias = known in TARGETS
        return best_las_s, "the better of dlas and dlas-gpu" if is_tiresias else "Muri's Tiresias-L"
    return replays.report("fifo").completion.mean, "fifo"


def _frontier(known: Known, replays: Replays) -> dict[str, str]:
    """Print the table of a trace; return both ratios of each policy."""
    ratios = {}
    reference_s, what = _reference(known, replays)
    strict_s = replays.report("fifo-strict").wait.longest
    print(f"\n{known.name} on {known.cluster}: mean over {what} ({reference_s:,.1f} s),")
    print(f"longest wait over fifo-strict ({strict_s:,.0f} s)")
    print(f"  {'policy':12}{'mean s':>14}{'ratio':>9}{'longest s':>14}{'ratio':>9}{'stops':>8}")
    for policy in POLICIES:
        one = replays.report(policy)
        mean_s, longest_s = one.completion.mean, one.wait.longest
        mark = "  <- default" if policy == DEFAULT_POLICY else ""
        print(
            f"  {policy:12}{mean_s:14,.1f}{mean_s / reference_s:9.3f}{longest_s:14,.0f}"
            f"{longest_s / strict_s:9.2f}{one.preemptions:8,}{mark}",
            flush=True,
        )
        ratios[policy] = f"{mean_s / reference_s:.3f} / {longest_s / strict_s:.2f}"
    return ratios


def _default(known: Known, replays: Replays) -> Iterator[Check]:
    is_held = known in TARGETS
    ours = replays.report(DEFAULT_POLICY)
    mean_s = ours.completion.mean
    reference_s, what = _reference(known, replays)
    yield _over(
        f"{known.name}: mean completion over {what}",
        mean_s,
        reference_s,
        target=MEAN_TARGET if is_held else None,
    )
    yield _over(
        f"{known.name}: longest wait over fifo-strict",
        ours.wait.longest,
        replays.report("fifo-strict").wait.longest,
        target=LONGEST_TARGET if is_held else None,
    )
    oracle_s = replays.report("srtf", restart_cost_s=0.0).completion.mean
    yield _over(f"{known.name}: mean completion over the SRTF oracle", mean_s, oracle_s)


def _over(name: str, ours_s: float, peer_s: float, target: float | None = None) -> Check:
    return Check(
        name=name,
        ours=round(ours_s, 1),
        peer=round(peer_s, 1),
        unit="s",
        ratio=round(ours_s / peer_s, 4),
        target=target,
    )


def _fairness() -> list[Check]:
    """Compare fairness over the users of two virtual clusters, each on its own nodes."""
    workload = workload_of(USERS)
    if workload is None:
        return []
    print(f"\n{USERS}: the jobs of each virtual cluster on nodes of its own, {GROUPS}; fairness")
    print("over the users of both (Jain), mean completion; then all jobs on 22x8 together")
    print(
        f"  {'policy':12}{'fair share':>12}{'jain':>9}{'mean s':>12}{'22x8 jain':>12}{'mean s':>12}"
    )
    indices: dict[tuple[str, bool], tuple[float, float]] = {}
    for policy in ("fifo", "las", DEFAULT_POLICY):
        for fair_share in (False, True):
            settings = Settings(fair_share=fair_share)
            apart, mean_s = _apart(workload, policy, settings)
            together = try_policy(workload, Cluster.parse("22x8"), policy, settings).report
            assert together.jain is not None
            indices[policy, fair_share] = apart, together.jain
            print(
                f"  {policy:12}{'on' if fair_share else 'off':>12}{apart:9.4f}{mean_s:12,.0f}"
                f"{together.jain:12.4f}{together.completion.mean:12,.0f}",
                flush=True,
            )
    return [
        _fairer(where, place, indices)
        for place, where in enumerate(("each on its own nodes", "all on 22x8"))
    ]


def _apart(workload: Workload, policy: str, settings: Settings) -> tuple[float, float]:
    """Replay each group on its own nodes; fairness over all users and mean completion."""
    records: list[Record] = []
    for group, cluster in GROUPS.items():
        jobs = Workload.of(group, (job for job in workload.jobs if job.group == group))
        records += try_policy(jobs, Cluster.parse(cluster), policy, settings).records
    assert len(records) == len(workload.jobs)
    both = report_on(records, Cluster.parse("22x8"), events=0, wall_s=0.0)
    return jain([user.share for user in both.users]), both.completion.mean


def _fairer(where: str, place: int, indices: dict[tuple[str, bool], tuple[float, float]]) -> Check:
    ours = indices[DEFAULT_POLICY, True][place]
    peer = max(found[place] for (policy, _), found in indices.items() if policy != DEFAULT_POLICY)
    return Check(
        name=f"{USERS}, {where}: fairness with fair share, over fifo and las with and without",
        ours=round(ours, 4),
        peer=round(peer, 4),
        unit="(Jain)",
        ratio=round(peer / ours, 4),
        target=FAIRNESS_TARGET,
    )


if __name__ == "__main__":
    sys.exit(main())
