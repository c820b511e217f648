from tests.core.builders import GIB, Lab, gpu, seen
from workbench.core.explain import explain
from workbench.core.model import JobId

SHARE = {"gpus": 1, "share_bytes": 30 * GIB}


def reason(lab: Lab, job: str) -> str:
    return explain(lab.state, lab.scheduler.standings, JobId(job)).reason


def test_a_share_that_waits_is_told_who_shares_and_how_much_is_left() -> None:
    lab = Lab(gpus=2)
    lab.submit("a", gpus=1)
    lab.submit("b", **SHARE)
    lab.submit("c", **SHARE)
    lab.submit("d", **SHARE)
    assert reason(lab, "d") == (
        "it waits for 30 GiB of a GPU, none has room: GPU-00000000 is held by job a,"
        " GPU-00000001 is shared by job b and job c, 16 GiB left"
    )
    lab.submit("e", gpus=2)
    assert reason(lab, "e") == (
        "it waits for 2 GPUs, 0 free: GPU-00000000 is held by job a,"
        " GPU-00000001 is shared by job b and job c"
    )


def test_a_share_is_told_only_of_gpus_that_are_large_enough() -> None:
    lab = Lab(gpus=1)
    lab.send(seen(0, 1, memory_gib=24))
    lab.send(seen(0, 2, memory_gib=None))
    lab.submit("a", gpus=1, gpu_memory_bytes=80 * GIB)
    lab.submit("b", **SHARE)
    assert reason(lab, "b") == (
        "it waits for 30 GiB of a GPU, none has room: GPU-00000000 is held by job a"
    )


def test_a_share_that_waits_for_cores_is_not_told_of_gpus() -> None:
    lab = Lab(gpus=1, cores=2)
    lab.submit("a", **SHARE)
    lab.submit("b", **SHARE, cores=2)
    assert reason(lab, "b") == "it waits for 2 cores, 1 of 2 free"


def test_a_job_that_waits_for_slices_is_told_of_those_of_its_profile() -> None:
    lab = Lab(gpus=2)
    for number in (10, 11):
        lab.send(seen(0, number, memory_gib=10, mig="1g.10gb", parent=gpu(0)))
    lab.submit("a", gpus=1, mig="1g.10gb")
    lab.submit("b", gpus=2, mig="1g.10gb")
    assert reason(lab, "b") == (
        "it waits for 2 slices 1g.10gb, 1 free: GPU-0000000a is held by job a"
    )
    lab.submit("c", gpus=1)
    lab.submit("d", gpus=1)
    assert reason(lab, "d") == (
        "it waits for 1 GPU, 0 free: GPU-00000000 is split into slices,"
        " GPU-00000001 is held by job c"
    )


def test_slices_of_a_gpu_that_is_leased_as_a_whole_are_explained() -> None:
    lab = Lab(gpus=1)
    lab.submit("a", gpus=1)
    lab.send(seen(0, 10, memory_gib=10, mig="1g.10gb", parent=gpu(0)))
    lab.submit("b", gpus=1, mig="1g.10gb")
    assert reason(lab, "b") == (
        "it waits for 1 slice 1g.10gb, 0 free:"
        " GPU-0000000a is part of GPU-00000000, which is leased as a whole"
    )


def test_a_gang_of_one_model_is_told_of_the_entry_with_the_most_free() -> None:
    lab = Lab()
    for number, model in enumerate(["A100", "RTX", "RTX"]):
        lab.send(seen(0, number, model=model))
    lab.submit("a", gpus=1, models=("rtx",))
    lab.submit("b", gpus=2, models=("a100", "rtx"))
    assert reason(lab, "b") == (
        "it waits for 2 GPUs (a100 or rtx), 1 free: GPU-00000001 is held by job a"
    )
    lab.lose(2, missing=True)
    assert reason(lab, "b").endswith("job a, GPU-00000002 is missing (not listed)")
