from __future__ import annotations

import pytest

from workbench.devices.catalogue import MODELS, find_model, get_model


def test_the_a100_has_6912_cuda_cores_and_its_dense_peak() -> None:
    model = get_model("A100-SXM4-80GB")
    assert model.cuda_cores == 6912
    assert model.fp32_tflops == 19.5
    assert model.bf16_dense_tflops == 312
    assert model.bandwidth_gb_s == 2039
    assert get_model("A100-SXM4-40GB").bandwidth_gb_s == 1555


@pytest.mark.parametrize(
    "name", ["NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb", "NVIDIA RTX A6000", "rtx-a6000", "Tesla T4"]
)
def test_models_are_found_as_nvml_and_users_spell_them(name: str) -> None:
    assert find_model(name) is not None


def test_a_model_that_is_not_catalogued_is_none_and_not_a_guess() -> None:
    assert find_model("NVIDIA A1000") is None


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_figures_are_in_their_units_and_have_a_source(model) -> None:  # noqa: ANN001
    assert 8 * 2**30 <= model.memory_bytes <= 512 * 2**30
    assert 1 <= model.fp32_tflops <= 200
    assert model.bf16_dense_tflops is None or 1 <= model.bf16_dense_tflops / model.fp32_tflops <= 20
    assert 100 <= model.bandwidth_gb_s <= 10_000
    assert model.source
    # Two operations a lane and cycle: the clock this implies must be one that GPUs run at.
    assert 1.0 <= model.fp32_tflops * 1000 / (2 * model.cuda_cores) <= 2.7
