"""First come, first served on a pool of GPUs, in twenty lines: what reports are checked with."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from workbench.simulate.metrics import Record, Stint
from workbench.simulate.workload import Cluster, SimJob, Workload


def fifo(workload: Workload, cluster: Cluster, *, greedy: bool = False) -> tuple[Record, ...]:
    """Strict blocks at the head of the queue; greedy starts whatever fits."""
    free = [
        f"node{n:02}/gpu{g}" for n in range(cluster.nodes) for g in range(cluster.gpus_per_node)
    ]
    arriving, waiting = deque(workload.jobs), deque[SimJob]()
    running: list[tuple[float, int, tuple[str, ...]]] = []
    records: list[Record] = []
    while arriving or waiting:
        now = min([*(job.submit_s for job in [*arriving][:1]), *(end for end, *_ in running[:1])])
        while running and running[0][0] == now:
            free += heappop(running)[2]
        while arriving and arriving[0].submit_s == now:
            waiting.append(arriving.popleft())
        for job in [*waiting]:
            if job.gpus <= len(free):
                gpus, free = tuple(free[: job.gpus]), free[job.gpus :]
                end = now + job.service_s
                heappush(running, (end, len(records), gpus))
                stint = Stint(start_s=now, end_s=end, gpus=gpus)
                records.append(Record(job=job, first_start_s=now, end_s=end, stints=(stint,)))
                waiting.remove(job)
            elif not greedy:
                break
    return tuple(records)
