"""Peak figures of GPU models, from their data sheets.

Dense peaks only: the figures with "sparsity" in data sheets are twice these and apply to pruned
matrices. What a device reports of itself (its memory) comes before what stands here.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.devices.errors import UnknownModel

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """One model.

    Attributes:
        name: As NVML spells it, without a leading "NVIDIA " or "Tesla ".
        memory_bytes: Nominal.
        cuda_cores: FP32 lanes.
        fp32_tflops: 10^12 operations a second, without tensor cores.
        bf16_dense_tflops: With tensor cores, dense, FP32 accumulation; None where it has no BF16.
        bandwidth_gb_s: Device memory, in 10^9 bytes a second.
        source: The document.
    """

    name: str
    memory_bytes: int
    cuda_cores: int
    fp32_tflops: float
    bf16_dense_tflops: float | None
    bandwidth_gb_s: float
    source: str


_ROWS = (
    # name, GiB, CUDA cores, FP32 TFLOP/s, dense BF16 TFLOP/s, GB/s, source
    ("T4", 16, 2560, 8.1, None, 300.0, "NVIDIA T4 data sheet"),
    ("V100-SXM2-32GB", 32, 5120, 15.7, None, 900.0, "NVIDIA V100 data sheet"),
    ("A100-SXM4-40GB", 40, 6912, 19.5, 312.0, 1555.0, "NVIDIA A100 data sheet"),
    ("A100-SXM4-80GB", 80, 6912, 19.5, 312.0, 2039.0, "NVIDIA A100 data sheet"),
    ("A100 80GB PCIe", 80, 6912, 19.5, 312.0, 1935.0, "NVIDIA A100 data sheet"),
    ("A10", 24, 9216, 31.2, 125.0, 600.0, "NVIDIA A10 data sheet"),
    ("A40", 48, 10752, 37.4, 149.7, 696.0, "NVIDIA A40 data sheet"),
    ("RTX A6000", 48, 10752, 38.7, 154.8, 768.0, "NVIDIA RTX A6000 data sheet"),
    ("L4", 24, 7424, 30.3, 121.0, 300.0, "NVIDIA L4 data sheet"),
    ("L40S", 48, 18176, 91.6, 362.0, 864.0, "NVIDIA L40S data sheet"),
    ("GeForce RTX 3090", 24, 10496, 35.6, 71.0, 936.0, "NVIDIA Ampere GA102 white paper"),
    ("GeForce RTX 4090", 24, 16384, 82.6, 165.2, 1008.0, "NVIDIA Ada GPU white paper"),
    ("H100 PCIe", 80, 14592, 51.0, 756.0, 2000.0, "NVIDIA H100 data sheet"),
    ("H100 80GB HBM3", 80, 16896, 67.0, 989.0, 3350.0, "NVIDIA H100 data sheet"),
    ("H200", 141, 16896, 67.0, 989.0, 4800.0, "NVIDIA H200 data sheet"),
)

MODELS = tuple(
    GpuModel(
        name=name,
        memory_bytes=memory_gib * GIB,
        cuda_cores=cores,
        fp32_tflops=fp32,
        bf16_dense_tflops=bf16,
        bandwidth_gb_s=bandwidth,
        source=source,
    )
    for name, memory_gib, cores, fp32, bf16, bandwidth, source in _ROWS
)


def _key(name: str) -> str:
    plain = name.casefold().strip()
    return plain.removeprefix("nvidia").strip().removeprefix("tesla").strip().replace(" ", "-")


_BY_KEY = {_key(model.name): model for model in MODELS}


def find_model(name: str) -> GpuModel | None:
    """The model that NVML or a user calls so, in any case; None where it is not catalogued."""
    return _BY_KEY.get(_key(name))


def get_model(name: str) -> GpuModel:
    """The model that a user named.

    Raises:
        UnknownModel: Not catalogued; shows the user the names that are.
    """
    if model := find_model(name):
        return model
    known = ", ".join(model.name.replace(" ", "-") for model in MODELS)
    raise UnknownModel(f"no GPU model {name!r} in the catalogue", next_step=f"Use one of: {known}")
