"""What Jupyter is given: the kernelspec and the provisioner it names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jupyter_client import KernelManager
from jupyter_client.kernelspec import get_kernel_spec
from jupyter_client.provisioning import KernelProvisionerFactory
from traitlets import TraitError
from workbench_kernels.provisioner import LeaseProvisioner

from workbench.client import UserError

SPEC = Path(__file__).parents[2] / "kernels/specs/gpu-lease/kernel.json"


def test_jupyter_finds_the_installed_kernel_as_it_is_here() -> None:
    spec = get_kernel_spec("gpu-lease")
    assert spec.display_name == "Python 3 (GPU lease)"
    here = json.loads(SPEC.read_text())
    assert (spec.argv, spec.metadata) == (here["argv"], here["metadata"])


def test_the_kernelspec_names_our_provisioner_and_sets_only_what_it_knows() -> None:
    spec = get_kernel_spec("gpu-lease")
    factory = KernelProvisionerFactory.instance()
    made = factory.create_provisioner_instance("an-id", spec, parent=KernelManager())
    assert type(made) is LeaseProvisioner
    assert (made.gpus, made.cpus, made.gpu_memory, made.wait_s) == (1, None, None, 20.0)
    config = spec.metadata["kernel_provisioner"]["config"]
    assert set(config) <= set(LeaseProvisioner.class_own_traits(config=True))


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"gpus": 0}, "gpus 0 is below 1. Give the number of whole GPUs, at least 1"),
        ({"gpus": 10**9}, "gpus 1000000000 is more than any host has"),
        ({"cpus": 0}, "cpus 0 is below 1. Give the number of cores, at least 1"),
        ({"wait_s": -1.0}, "wait_s -1 is below 0. Give the seconds that a start may wait"),
        ({"gpu_memory": "much"}, "gpu_memory 'much' is not a size"),
    ],
)
async def test_a_start_with_a_setting_that_makes_no_sense_names_it_the_rule_and_what_to_write(
    setting: dict[str, object], said: str
) -> None:
    made = provisioner(**setting)
    with pytest.raises(UserError) as refused:
        await made.pre_launch(env={})
    assert str(refused.value).startswith(f"the kernel's setting {said}")


def test_a_setting_of_another_type_is_refused() -> None:
    with pytest.raises(TraitError):
        provisioner(gpus="two")


def provisioner(**setting: object) -> LeaseProvisioner:
    return LeaseProvisioner(
        kernel_id="an-id",
        kernel_spec=get_kernel_spec("gpu-lease"),
        parent=KernelManager(),
        **setting,
    )
