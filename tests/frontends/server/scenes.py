"""Labs to show: `Status` messages for pages and routes, without a controller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from workbench.protocol.messages import (
    ControllerView,
    Estimate,
    JobView,
    RequestSpec,
    Status,
)
from workbench.protocol.telemetry import (
    DeviceSample,
    HostSample,
    NotAvailable,
    NvmlState,
    NvmlStatus,
    ProcessSample,
    Reading,
    Sample,
    SampleStatus,
)

GIB = 2**30
NOW_S = 1_900_000_000.0
ME = 1000


def uuid(index: int) -> str:
    return f"GPU-{0x5E1F0000 + index * 0x11:08x}-4b3e-91c2-77aa-00c0ffee{index:04x}"


def device(
    index: int, *, util_pct: float | Reading = 0.0, used_gib: float = 0.4, **rest: Any
) -> DeviceSample:
    util = util_pct if isinstance(util_pct, Reading) else Reading(value=util_pct)
    fields: dict[str, Any] = {
        "uuid": uuid(index),
        "index": index,
        "name": "NVIDIA A100-SXM4-80GB",
        "memory_total_bytes": Reading(value=80 * GIB),
        "memory_used_bytes": Reading(value=int(used_gib * GIB)),
        "util_pct": util,
    }
    return DeviceSample(**{**fields, **rest})


def not_read(reason: NotAvailable) -> Reading:
    return Reading(reason=reason)


def lost(index: int, status: SampleStatus = SampleStatus.LOST) -> DeviceSample:
    gone = not_read(NotAvailable.LOST)
    return device(
        index,
        status=status,
        memory_total_bytes=gone,
        memory_used_bytes=gone,
        util_pct=gone,
        processes_reason=NotAvailable.LOST,
    )


def outside(index: int) -> DeviceSample:
    process = ProcessSample(
        pid=4711, used_bytes=Reading(value=12 * GIB), owner_uid=Reading(value=1007)
    )
    return device(index, util_pct=35.0, used_gib=12.4, processes=(process,))


def job(number: int, **rest: Any) -> JobView:
    request = rest.pop("request", RequestSpec(kind="cell", gpus=1, cores=8))
    fields: dict[str, Any] = {
        "id": f"{number:032x}",
        "owner_uid": ME,
        "owner": "ana",
        "mine": True,
        "kind": request.kind,
        "name": f"cell {number}",
        "notebook": "train_digits.ipynb",
        "priority": request.priority,
        "state": "queued",
        "place": None,
        "reason": "",
        "estimate": None,
        "request": request,
        "gpus": [],
        "cores": request.cores,
        "submitted_unix_s": NOW_S - 400,
        "started_unix_s": None,
        "ended_unix_s": None,
        "outcome": None,
    }
    return JobView(**{**fields, **rest})


def another(number: int, owner: str = "bob", uid: int = 1001, **rest: Any) -> JobView:
    return job(
        number,
        **{"owner": owner, "owner_uid": uid, "mine": False, "name": None, "notebook": None, **rest},
    )


def running(number: int, on: list[int], **rest: Any) -> JobView:
    fields: dict[str, Any] = {
        "state": "running",
        "gpus": [uuid(index) for index in on],
        "started_unix_s": NOW_S - 190,
        "reason": "Runs on the GPUs that were free first",
        "request": RequestSpec(kind="cell", gpus=len(on), cores=8, time_limit_s=1200),
    }
    return job(number, **{**fields, **rest})


@dataclass(kw_only=True)
class Scene:
    """A lab; `status` builds what the controller would say of it."""

    devices: list[DeviceSample] = field(default_factory=list)
    jobs: list[JobView] = field(default_factory=list)
    ended: list[JobView] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    nvml: NvmlState = field(default_factory=lambda: NvmlState(state=NvmlStatus.OK))
    hostname: str = "gpu01.lab.example"
    mode: Any = "lab"
    simulated: bool = False
    cpu_pct: float | None = 23.0
    sampled: bool = True

    def status(self, at_s: float = NOW_S) -> Status:
        host = HostSample(
            hostname=self.hostname,
            cpu_util_pct=(
                Reading(value=self.cpu_pct)
                if self.cpu_pct is not None
                else not_read(NotAvailable.FIRST_SAMPLE)
            ),
            cores_usable=Reading(value=48),
            cores_total=Reading(value=64),
            memory_total_bytes=Reading(value=512 * GIB),
            memory_available_bytes=Reading(value=391 * GIB),
        )
        sample = Sample(at_unix_s=at_s, host=host, devices=tuple(self.devices), nvml=self.nvml)
        return Status(
            controller=ControllerView(
                hostname=self.hostname,
                mode=self.mode,
                uid=998,
                pid=812,
                software="0.1.0",
                protocol=1,
                simulated=self.simulated,
            ),
            sample=sample if self.sampled else None,
            jobs=self.jobs,
            ended=self.ended,
            notices=self.notices,
        )


def with_util(scene: Scene, util_pct: list[float]) -> Scene:
    """Return the same lab with other use of its devices."""
    devices = [
        msgspec.structs.replace(each, util_pct=Reading(value=value))
        for each, value in zip(scene.devices, util_pct, strict=True)
    ]
    return Scene(**{**vars(scene), "devices": devices})


def no_gpu() -> Scene:
    return Scene(
        hostname="laptop",
        mode="embedded",
        nvml=NvmlState(
            state=NvmlStatus.NO_LIBRARY,
            message="NVIDIA's monitoring library (libnvidia-ml.so.1) is not on this host",
            next_step="Install the NVIDIA driver if there is a GPU; the CPU works as it is",
        ),
    )


def one_gpu() -> Scene:
    return Scene(devices=[device(0, util_pct=2.0)], mode="embedded", hostname="workstation")


def busy_lab() -> Scene:
    """Four GPUs: mine, another's, one used from outside, one free; five jobs."""
    return Scene(
        devices=[
            device(0, util_pct=83.0, used_gib=24.1),
            device(1, util_pct=97.0, used_gib=71.6),
            outside(2),
            device(3),
        ],
        jobs=[
            running(1, [0]),
            another(
                2,
                state="running",
                gpus=[uuid(1)],
                started_unix_s=NOW_S - 9000,
                request=RequestSpec(kind="notebook", priority="high", gpus=1, cores=12),
            ),
            job(
                3,
                place=1,
                name="fine-tune",
                notebook="papers/resnet_ablation.ipynb",
                reason="Needs 2 GPUs; 1 is free, GPU 1 is bob's until its limit",
                estimate=Estimate(low_s=300, high_s=720, reason="from the time limits"),
                request=RequestSpec(kind="notebook", gpus=2, cores=16, priority="high"),
            ),
            another(
                4,
                owner="chidi",
                uid=1002,
                place=2,
                reason="Waits behind a job of a higher class",
                estimate=Estimate(reason="a job before it has no time limit"),
                request=RequestSpec(kind="command", gpus=4, cores=32, priority="low"),
            ),
            job(
                5,
                place=3,
                name="score",
                reason="Waits for 16 free cores",
                request=RequestSpec(kind="cell", gpus=0, cores=16),
            ),
        ],
        ended=[
            job(6, state="ended", outcome="done", reason="Ran 42 s", ended_unix_s=NOW_S - 75),
            job(
                7,
                state="ended",
                outcome="failed",
                name="load",
                reason="FileNotFoundError: digits.npz",
                ended_unix_s=NOW_S - 3700,
            ),
        ],
    )


def big_lab() -> Scene:
    """Sixteen GPUs, one lost, one stale; a gang of eight."""
    devices = [device(i, util_pct=100.0 * ((i * 7) % 16) / 15, used_gib=5.0 * i) for i in range(16)]
    devices[5] = lost(5)
    devices[9] = device(
        9, util_pct=61.0, used_gib=33.0, status=SampleStatus.STALE, stale_age_s=47.0
    )
    return Scene(
        devices=devices,
        jobs=[
            running(1, [0, 1, 2, 3], name="sweep"),
            another(
                2,
                state="running",
                gpus=[uuid(i) for i in range(8, 16)],
                started_unix_s=NOW_S - 86_400 * 2,
                request=RequestSpec(kind="command", gpus=8, cores=64),
            ),
        ],
        notices=["GPU 5 was lost at 14:02. Ask whoever keeps this host to reset it."],
    )


def long_names() -> Scene:
    name = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition (engineering sample, 96 GB)"
    notebook = (
        "projects/2026/very/deep/folder/" + "a_notebook_with_a_really_long_name_" * 3 + ".ipynb"
    )
    return Scene(
        hostname="gpu-node-0017.rack-12.cluster.department.university.example.org",
        devices=[
            device(0, util_pct=55.0, used_gib=40.0, name=name),
            lost(1),
            device(2, util_pct=not_read(NotAvailable.NOT_SUPPORTED)),
        ],
        jobs=[
            running(1, [0], name="cross_validate_all_the_models_" * 3, notebook=notebook),
            another(
                2,
                owner="maximiliane.von-und-zu-hohenstein@department",
                place=1,
                reason="Waits because " + "every GPU is held and none has a time limit; " * 4,
            ),
        ],
    )


def simulated() -> Scene:
    devices = [
        device(
            i,
            uuid=f"SIM-{i}",
            simulated=True,
            util_pct=not_read(NotAvailable.SIMULATED),
            memory_used_bytes=not_read(NotAvailable.SIMULATED),
        )
        for i in range(4)
    ]
    return Scene(
        devices=devices,
        jobs=[running(1, [0], gpus=["SIM-0"])],
        mode="embedded",
        simulated=True,
        nvml=NvmlState(state=NvmlStatus.NOT_IN_USE),
    )
