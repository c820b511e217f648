"""Real dask-cuda on four fake GPUs: one worker per leased UUID, and LocalCUDACluster once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.stand_ins.world import GIB, StubWorld
from workbench.devices.visible import lease_environment

pytest.importorskip("dask_cuda", reason="GPU workers need the cuda extra")

WORKERS = """
import asyncio, json, os, subprocess, sys
from distributed import Client, Scheduler

def report(dask_worker):
    import os
    from workbench.devices.visible import check_visibility
    leased = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    return {
        "leased": leased,
        "seen": check_visibility(leased).outcome.value,
        "limit": dask_worker.data.device_buffer.n,
        "gpu": dask_worker.monitor.gpu_name,
        "memory": dask_worker.monitor.gpu_memory_total,
    }

# A lost first card would end a scheduler or CPU worker that reads NVML, whatever it may see.
import dask
dask.config.set({"distributed.diagnostics.nvml": False})

async def main(uuids, environments):
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "dask", "cuda", "worker", scheduler.address,
                 "--name", uuid, "--device-memory-limit", str(2**33), "--nthreads", "1",
                 "--no-dashboard", "--local-directory", sys.argv[1]],
                env=os.environ | environment,
            )
            for uuid, environment in zip(uuids, environments)
        ]
        try:
            async with Client(scheduler.address, asynchronous=True) as client:
                await client.wait_for_workers(len(uuids), timeout=90)
                reports = await client.run(report)
                names = {w.address: w.name for w in scheduler.workers.values()}
                total = await client.submit(sum, await client.gather(client.map(abs, range(-9, 0))))
                await client.shutdown()
        finally:
            for worker in workers:
                worker.terminate()
                worker.wait()
    reports = {names[address]: report for address, report in reports.items()}
    print(json.dumps({"reports": reports, "sum": total}))

asyncio.run(main(json.loads(sys.argv[2]), json.loads(sys.argv[3])))
"""

CLUSTER = """
import json, os, sys

def main():
    from dask_cuda import LocalCUDACluster
    from distributed import Client
    with LocalCUDACluster(
        dashboard_address=None, local_directory=sys.argv[1], host="127.0.0.1"
    ) as cluster, Client(cluster) as client:
        client.wait_for_workers(4, timeout=90)
        visible = client.run(lambda: os.environ["CUDA_VISIBLE_DEVICES"])
        import numpy
        total = client.submit(lambda: int(numpy.arange(10).sum())).result()
        print(json.dumps({"visible": sorted(visible.values()), "sum": total}))

if __name__ == "__main__":
    main()
"""


def run_child(world: StubWorld, program: str, *arguments: str) -> tuple[dict[str, object], str]:
    """Run a program in the scripted world: its last line, which is JSON, and its log."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=env | world.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return msgspec.json.decode(run.stdout.splitlines()[-1]), run.stderr


def test_one_dask_cuda_worker_per_leased_uuid_sees_its_card_alone(
    nvml_stub: StubWorld, tmp_path: Path
) -> None:
    """Also case 5, k8s-device-plugin#2038: a lost card does not spoil the others."""
    uuids = nvml_stub.gpus(4)
    nvml_stub.lose(uuids[0])
    leased = [uuids[3], uuids[1]]
    environments = [lease_environment([uuid]) for uuid in leased]
    answer, _ = run_child(
        nvml_stub,
        WORKERS,
        str(tmp_path),
        msgspec.json.encode(leased).decode(),
        msgspec.json.encode(environments).decode(),
    )
    assert answer["reports"] == {
        uuid: {
            "leased": [uuid],
            "seen": "same",
            "limit": 8 * GIB,
            "gpu": "NVIDIA A100-SXM4-80GB",
            "memory": 80 * GIB,
        }
        for uuid in leased
    }
    assert answer["sum"] == 45


def test_a_local_cuda_cluster_runs_on_four_cards(nvml_stub: StubWorld, tmp_path: Path) -> None:
    nvml_stub.gpus(4)
    answer, log = run_child(nvml_stub, CLUSTER, str(tmp_path))
    assert answer == {"visible": ["0,1,2,3", "1,2,3,0", "2,3,0,1", "3,0,1,2"], "sum": 45}
    assert "Unable to start CUDA Context" not in log
