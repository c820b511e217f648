from tests.core.builders import (
    GIB,
    Lab,
    gpu,
    grant,
    jobs_of,
    seen,
)
from workbench.core.events import (
    DeviceBusyOutside,
    DispatchHeld,
    DispatchResumed,
    HostSeen,
)
from workbench.core.model import JobState, Units


def test_jobs_start_on_healthy_gpus_while_one_is_lost() -> None:
    """NVIDIA/k8s-device-plugin#2038."""
    lab = Lab(gpus=4)
    lab.lose(1)
    for job in ("a", "b", "c", "d"):
        lab.submit(job, gpus=1)
    assert [lab.gpus_of(job) for job in ("a", "b", "c", "d")] == [[gpu(0)], [gpu(2)], [gpu(3)], []]
    assert lab.send(seen(0, 1)) == [grant(3, 0, 3, "d", Units(gpus=(gpu(1),), cores=1))]


def test_a_lease_on_a_missing_gpu_keeps_it_and_no_other_lease_moves() -> None:
    """microsoft/pai#4344."""
    lab = Lab(gpus=4)
    for job in ("a", "b", "c"):
        lab.submit(job, gpus=1)
        lab.start(job)
    assert lab.lose(1, missing=True) == []
    assert [lab.gpus_of(job) for job in ("a", "b", "c")] == [[gpu(0)], [gpu(1)], [gpu(2)]]
    assert list(lab.state.devices) == [gpu(number) for number in range(4)]
    lab.submit("d", gpus=1)
    assert lab.gpus_of("d") == [gpu(3)]
    lab.submit("e", gpus=1)
    assert lab.end("b") == []
    assert jobs_of(lab.send(seen(0, 1))) == ["e"]


def test_a_gpu_that_is_busy_outside_is_not_handed_out() -> None:
    lab = Lab()
    lab.send(seen(0, 0, busy_outside="python of uid 1009"))
    assert lab.submit("a", gpus=1) == []
    assert jobs_of(lab.send(seen(0, 0))) == ["a"]
    lab.send(DeviceBusyOutside(at=0, device=gpu(0), reason="python of uid 1009"))
    lab.submit("b", gpus=1)
    assert lab.end("a") == []


def test_while_dispatch_is_held_no_gpu_is_handed_out_and_running_jobs_go_on() -> None:
    """lyulyul/shine-cluster#30."""
    lab = Lab(gpus=2)
    lab.submit("a", gpus=1)
    lab.start("a")
    assert lab.send(DispatchHeld(at=0, reason="driver mismatch, reboot needed")) == []
    assert lab.submit("b", gpus=1) == []
    assert jobs_of(lab.submit("cpu")) == ["cpu"]
    assert lab.job("a").state is JobState.RUNNING
    assert jobs_of(lab.send(DispatchResumed(at=0))) == ["b"]


def test_after_a_shrink_of_the_host_nothing_is_granted_until_enough_is_free() -> None:
    lab = Lab(cores=4)
    lab.submit("a", cores=3)
    lab.submit("b", cores=2)
    lab.send(HostSeen(at=0, cores=2, memory_bytes=GIB))
    assert lab.tick(1) == []
    assert jobs_of(lab.end("a")) == ["b"]
