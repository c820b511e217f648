"""`make bench-core`: what the core costs in the default policy, in processor time of one core.

* philly_11cb48: events a second, and seconds in all. The simulator that Tiresias was published with
  takes 65 to 280 s for this trace, by policy: 65 is the `peer`, and `ratio` the part of 5 s used.
  For events a second `ratio` is 20,000 over ours.
* An event with about 10,000 jobs waiting over one with about 100: 20,000 jobs submitted at once, or
  some of them 200 at a time, so that half of them wait on average; timed once. Of one owner, and of
  20 with fair share.
* philly_6214e9 on 25x8 where it is given: `ratio` is the part of 20 s that is used.
* Memory as Python counts it, at its peak: what a job costs in a large workload over a small one, of
  those that wait in the core, and of those that are replayed; `ratio` is 1 where it grows linearly.

Other times are the median of `--runs`. The last line is JSON: `ratio` and `target` are those of the
first check.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from math import log
from random import Random
from statistics import median

from tests.benchmarks.result import Check, compared, report
from tests.benchmarks.traces import workload_of
from workbench.core.events import AgentConnected, DeviceSeen, HostSeen, JobSubmitted
from workbench.core.model import DeviceId, JobId, JobKind, Request, Uid
from workbench.core.scheduler import Scheduler
from workbench.policies import DEFAULT_POLICY, POLICIES
from workbench.simulate.run import simulate
from workbench.simulate.workload import Cluster, SimJob, Workload

EVENTS_PER_S = 20_000
TRACE = "philly_11cb48"
TRACE_LIMIT_S = 5.0
TIRESIAS_S = 65.0
LARGE_TRACE = "philly_6214e9"
LARGE_LIMIT_S = 20.0
GROWTH_TARGET = 2.0
LINEAR_TARGET = 1.25
CLUSTER = Cluster.parse("2x8")
JOBS = 20_000
OWNERS = 20
SHORT_JOBS = 4_000
SHORT_QUEUE = 200
"""Jobs that come at once: half of them wait on average."""
APART_S = 1e6
MEMORY_JOBS = (2_000, 8_000)
"""A factor of 4 apart, so that tables that double stand alike."""


def main() -> int:
    """Measure, print, and return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="timed runs of each")
    runs = parser.parse_args().runs
    checks = [
        *_trace(runs),
        _growth(owners=1),
        _growth(owners=OWNERS),
        *_large_trace(),
        _memory("a waiting job", _queue),
        _memory("a replayed job", _replay),
    ]
    return report("bench-core", checks)


def _trace(runs: int) -> Iterator[Check]:
    workload = workload_of(TRACE)
    assert workload is not None
    done = [_timed(workload, CLUSTER) for _ in range(runs)]
    spent_s = median(one_s for one_s, _ in done)
    rate = done[0][1] / spent_s
    print(f"{TRACE}: {', '.join(f'{one_s:.2f}' for one_s, _ in done)} s for {done[0][1]:,} events")
    yield Check(
        name=f"{TRACE}: events a second of one core",
        ours=round(rate),
        peer=EVENTS_PER_S,
        unit="events/s",
        ratio=round(EVENTS_PER_S / rate, 3),
        target=1.0,
    )
    yield Check(
        name=f"{TRACE} over the Tiresias simulator (65 to 280 s), in parts of {TRACE_LIMIT_S:g} s",
        ours=round(spent_s, 2),
        peer=TIRESIAS_S,
        unit="s",
        ratio=round(spent_s / TRACE_LIMIT_S, 3),
        target=1.0,
    )


def _large_trace() -> Iterator[Check]:
    workload = workload_of(LARGE_TRACE)
    if workload is None:
        return
    spent_s, events = _timed(workload, Cluster.parse("25x8"))
    print(f"{LARGE_TRACE}: {spent_s:.2f} s for {events:,} events")
    yield Check(
        name=f"{LARGE_TRACE} on 25x8, in parts of {LARGE_LIMIT_S:g} s",
        ours=round(spent_s, 2),
        peer=LARGE_LIMIT_S,
        unit="s",
        ratio=round(spent_s / LARGE_LIMIT_S, 3),
        target=1.0,
    )


def _timed(workload: Workload, cluster: Cluster, *, fair_share: bool = False) -> tuple[float, int]:
    """Return processor seconds, and how many events they were for."""
    began = time.process_time()
    replay = simulate(
        workload,
        cluster,
        policy=DEFAULT_POLICY,
        placement="pool",
        fair_share=fair_share,
        restart_cost_s=60.0,
    )
    return time.process_time() - began, replay.events


def _growth(*, owners: int) -> Check:
    spent_us = []
    for jobs, at_once in ((JOBS, JOBS), (SHORT_JOBS, SHORT_QUEUE)):
        workload = _burst(jobs, at_once=at_once, owners=owners)
        spent_s, events = _timed(workload, CLUSTER, fair_share=owners > 1)
        spent_us.append(1e6 * spent_s / events)
        print(f"{owners} owners, {at_once:,} jobs at once: {spent_s:.2f} s for {events:,} events")
    name = f"an event, {JOBS // 2:,} waiting over {SHORT_QUEUE // 2}, owners: {owners}"
    return compared(name, [(spent_us[0], spent_us[1])], unit="us", target=GROWTH_TARGET)


def _burst(jobs: int, *, at_once: int, owners: int = 1) -> Workload:
    random = Random(1)
    return Workload.of(
        f"{at_once} at once",
        (
            SimJob(
                id=str(number),
                submit_s=number // at_once * APART_S,
                service_s=1.0 + min(round(random.lognormvariate(log(300), 1.5)), 4 * 3600),
                gpus=random.choices((1, 2, 4, 8), (70, 15, 10, 5))[0],
                user=f"user{random.randrange(owners)}",
            )
            for number in range(jobs)
        ),
    )


def _memory(name: str, work: Callable[[int], object]) -> Check:
    """Compare bytes a job at two sizes."""
    work(100)  # What is made once.
    small, large = (_peak_bytes(work, jobs) / jobs for jobs in MEMORY_JOBS)
    return Check(
        name=f"memory of {name}, {MEMORY_JOBS[1]:,} over {MEMORY_JOBS[0]:,} jobs",
        ours=round(large),
        peer=round(small),
        unit="bytes",
        ratio=round(large / small, 3),
        target=LINEAR_TARGET,
    )


def _peak_bytes(work: Callable[[int], object], jobs: int) -> int:
    tracemalloc.start()
    try:
        kept = work(jobs)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del kept
    return peak


def _queue(jobs: int) -> Scheduler:
    """Queue jobs behind a lab that is held by the first of them."""
    scheduler = Scheduler(POLICIES[DEFAULT_POLICY]())
    scheduler.fold(HostSeen(at=0.0, cores=64, memory_bytes=1 << 40))
    for number in range(CLUSTER.gpus):
        scheduler.fold(
            DeviceSeen(
                at=0.0, device=DeviceId(f"gpu{number}"), model="", memory_bytes=None, simulated=True
            )
        )
    for owner in range(1, OWNERS + 1):
        scheduler.fold(AgentConnected(at=0.0, owner=Uid(owner)))
    for number in range(jobs):
        gpus = CLUSTER.gpus if number == 0 else (1, 2, 4, 8)[number % 4]
        scheduler.handle(
            JobSubmitted(
                at=float(number),
                job=JobId(f"job{number}"),
                owner=Uid(1 + number % OWNERS),
                request=Request(kind=JobKind.COMMAND, gpus=gpus),
                name="",
                notebook=None,
            )
        )
    assert scheduler.state.waiting_jobs == jobs - 1
    return scheduler


def _replay(jobs: int) -> object:
    workload = _burst(jobs, at_once=SHORT_QUEUE)
    return simulate(
        workload,
        CLUSTER,
        policy=DEFAULT_POLICY,
        placement="pool",
        fair_share=False,
        restart_cost_s=60.0,
    )


if __name__ == "__main__":
    sys.exit(main())
