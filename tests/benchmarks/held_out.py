"""Traces that no constant was chosen on, for `make bench-policy ARGS=--held-out`.

The given traces cut in halves, and with the times between submissions squeezed to 0.7, which
overloads most of them, and stretched to 1.3. And made ones on 4x8 GPUs at a load of 0.85, whose run
times are log-normal or have two peaks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import exp, log
from random import Random

from tests.benchmarks.traces import Known, Replays
from workbench.policies import DEFAULT_POLICY
from workbench.simulate.workload import Cluster, SimJob, Workload

POLICIES = ("fifo", "las", "gittins", DEFAULT_POLICY)
SCALES = (0.7, 1.3)
SEEDS = (1, 2)
JOBS = 1500
LOAD = 0.85
MADE_ON = Cluster.parse("4x8")
GANGS = (1, 2, 4, 8, 16)
GANG_WEIGHTS = (60, 15, 12, 10, 3)
LONGEST_S = 7 * 86400.0
MOST_JOBS = 3000
"""Of a trace that is changed; larger ones take minutes each."""


def show(traces: Iterable[tuple[Known, Workload]]) -> None:
    """Print the table, in Markdown: mean over the SRTF oracle's / longest wait over strict FIFO's."""
    columns = " | ".join(f"`{policy}`" for policy in POLICIES)
    print(f"| mean over SRTF, longest wait over fifo-strict | {columns} |")
    print("|---" * (len(POLICIES) + 1) + "|")
    logs: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    for cluster, workload in _workloads(traces):
        replays = Replays(workload, cluster)
        oracle_s = replays.report("srtf", restart_cost_s=0.0).completion.mean
        strict_s = replays.report("fifo-strict").wait.longest
        cells = []
        for policy in POLICIES:
            one = replays.report(policy)
            ratio = one.completion.mean / oracle_s
            longest = f"{one.wait.longest / strict_s:.2f}" if strict_s else "none waits"
            logs[policy].append(log(ratio))
            cells.append(f"{ratio:.2f} / {longest}")
        print(f"| {workload.name} | {' | '.join(cells)} |", flush=True)
    means = (f"{exp(sum(found) / len(found)):.2f}" for found in logs.values())
    print(f"| geometric mean | {' | '.join(means)} |")


def _workloads(traces: Iterable[tuple[Known, Workload]]) -> Iterator[tuple[Cluster, Workload]]:
    for known, workload in traces:
        if len(workload.jobs) > MOST_JOBS:
            print(f"NOT RUN: {known.name}, of {len(workload.jobs):,} jobs", file=sys.stderr)
            continue
        for one in changed(known.name, workload.jobs):
            yield known.cluster, one
    for seed in SEEDS:
        yield MADE_ON, made(f"log-normal {seed}", seed, has_two_peaks=False)
        yield MADE_ON, made(f"two peaks {seed}", seed, has_two_peaks=True)


def changed(name: str, jobs: tuple[SimJob, ...]) -> Iterator[Workload]:
    """Yield the halves of a trace, and the trace squeezed and stretched."""
    middle = len(jobs) // 2
    yield Workload.of(f"{name} 1st half", jobs[:middle])
    yield Workload.of(f"{name} 2nd half", jobs[middle:])
    for scale in SCALES:
        scaled = (replace(job, submit_s=job.submit_s * scale) for job in jobs)
        yield Workload.of(f"{name} x{scale}", scaled)


def made(name: str, seed: int, *, has_two_peaks: bool, jobs: int = JOBS) -> Workload:
    """Return a made trace for the cluster `MADE_ON`."""
    random = Random(seed)
    drawn = []
    for _ in range(jobs):
        (gpus,) = random.choices(GANGS, GANG_WEIGHTS)
        if has_two_peaks:
            is_long = random.random() < 0.15
            service_s = random.lognormvariate(log(21600 if is_long else 120), 0.7)
        else:
            service_s = random.lognormvariate(log(600), 2.0)
        drawn.append((min(round(service_s) + 1.0, LONGEST_S), gpus))
    span_s = sum(service_s * gpus for service_s, gpus in drawn) / (LOAD * MADE_ON.gpus)
    submits = sorted(random.uniform(0, span_s) for _ in drawn)
    return Workload.of(
        name,
        (
            SimJob(id=str(number), submit_s=round(at), service_s=service_s, gpus=gpus)
            for number, (at, (service_s, gpus)) in enumerate(zip(submits, drawn, strict=True))
        ),
    )
