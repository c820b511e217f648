"""Plays shim and home for GPU workers: `python -m tests.engines.gpu_stage JOB UUID…`, prints JSON.

In a process of its own, since it forks, and since the stand-in libraries are found when a process
starts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from workbench.engines.local import start_gpu_workers
from workbench.graphs.dask_edge import Pool
from workbench.graphs.run_files import RunFiles
from workbench.graphs.run_news import Done


def report(meeting: str, count: int) -> None:
    """Write what a task sees in its worker, when as many workers have come to the meeting."""
    from distributed import get_worker

    from workbench.devices.visible import check_visibility

    visible = os.environ["CUDA_VISIBLE_DEVICES"]
    worker = get_worker()
    (Path(meeting) / f"{worker.name}.here").touch()
    while len(list(Path(meeting).glob("*.here"))) < count:
        time.sleep(0.01)
    seen = {
        "worker": worker.name,
        "visible": visible,
        "order": os.environ["CUDA_DEVICE_ORDER"],
        "check": check_visibility([visible]).outcome.value,
        "limit_bytes": worker.data.device_buffer.n,
        "threads": os.environ["OMP_NUM_THREADS"],
        "holds_lock": os.environ["TEST_LOCK"] in _open_inodes(),
    }
    (Path(meeting) / f"{worker.name}.seen").write_text(json.dumps(seen))


def _open_inodes() -> set[str]:
    parents = [os.getpid(), os.getppid()]
    return {
        str(path.stat().st_ino)
        for pid in parents
        for path in Path(f"/proc/{pid}/fd").iterdir()
        if path.exists()
    }


def main() -> None:
    job, *uuids = sys.argv[1:]
    files = RunFiles(Path(job))
    os.setsid()
    lock = os.open(job, os.O_RDONLY)
    os.environ["TEST_LOCK"] = str(os.fstat(lock).st_ino)
    asked = os.environ.get("TEST_MEMORY_BYTES")
    gate = start_gpu_workers(
        uuids,
        Path(job),
        enter=lambda: None,
        locks=[lock],
        threads=3,
        memory_bytes=int(asked) if asked else None,
    )
    gate.keep_home_side()
    pool = Pool(files, {True: gate})
    pool.start()
    pool.wait_ready()
    from tests.engines import gpu_stage

    for uuid in uuids:
        pool.submit(uuid, gpu_stage.report, job, len(uuids), gpu=True)
    news = [pool.wait()]
    while len(news) < len(uuids) and isinstance(news[-1], Done):
        news.append(pool.wait())
    pool.close()
    pool.join()
    os.close(gate.fileno())
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    refused = files.refused.read_text() if files.refused.exists() else None
    seen = [json.loads(path.read_text()) for path in Path(job).glob("*.seen")]
    news_of = [type(one).__name__ for one in news]
    print(json.dumps({"seen": seen, "news": news_of, "refused": refused}))


if __name__ == "__main__":
    main()
