"""The stand-ins against NVIDIA's own nvml.h, which is only used here and not copied."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
from pathlib import Path

import pytest

from tests.stand_ins.build import SOURCES, NoCompiler, build, compiler

STRUCTS = {
    "stub_memory": ("nvmlMemory_t", {"total": "total", "free": "free", "used": "used"}),
    "stub_memory_v2": (
        "nvmlMemory_v2_t",
        {
            "version": "version",
            "total": "total",
            "reserved": "reserved",
            "free": "free",
            "used": "used",
        },
    ),
    "stub_utilization": ("nvmlUtilization_t", {"gpu": "gpu", "memory": "memory"}),
    "stub_process_v1": ("nvmlProcessInfo_v1_t", {"pid": "pid", "used": "usedGpuMemory"}),
    "stub_process_v2": (
        "nvmlProcessInfo_v2_t",
        {
            "pid": "pid",
            "used": "usedGpuMemory",
            "gpu_instance": "gpuInstanceId",
            "compute_instance": "computeInstanceId",
        },
    ),
    "stub_pci_info": (
        "nvmlPciInfo_t",
        {"bus_id_legacy": "busIdLegacy", "domain": "domain", "bus": "bus", "bus_id": "busId"},
    ),
    "stub_attributes": (
        "nvmlDeviceAttributes_t",
        {"multiprocessors": "multiprocessorCount", "memory_mib": "memorySizeMB"},
    ),
}
CODES = {
    "STUB_UNINITIALIZED": "NVML_ERROR_UNINITIALIZED",
    "STUB_INVALID_ARGUMENT": "NVML_ERROR_INVALID_ARGUMENT",
    "STUB_NOT_SUPPORTED": "NVML_ERROR_NOT_SUPPORTED",
    "STUB_NO_PERMISSION": "NVML_ERROR_NO_PERMISSION",
    "STUB_NOT_FOUND": "NVML_ERROR_NOT_FOUND",
    "STUB_INSUFFICIENT_SIZE": "NVML_ERROR_INSUFFICIENT_SIZE",
    "STUB_DRIVER_NOT_LOADED": "NVML_ERROR_DRIVER_NOT_LOADED",
    "STUB_FUNCTION_NOT_FOUND": "NVML_ERROR_FUNCTION_NOT_FOUND",
    "STUB_GPU_IS_LOST": "NVML_ERROR_GPU_IS_LOST",
    "STUB_LIB_RM_VERSION_MISMATCH": "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
    "STUB_UNKNOWN": "NVML_ERROR_UNKNOWN",
}


def header_folder() -> Path:
    files = importlib.metadata.files("nvidia-nvml-dev") or []
    return next(Path(str(f.locate())).parent for f in files if f.name == "nvml.h")


def check(tmp_path: Path, assertions: list[str]) -> subprocess.CompletedProcess[str]:
    """Compile these assertions with both headers in sight."""
    source = tmp_path / "check.c"
    lines = [
        "#include <stddef.h>",
        "#define NVML_NO_UNVERSIONED_FUNC_DEFS",
        '#include "nvml.h"',
        '#include "nvml_abi.h"',
        *assertions,
    ]
    source.write_text("\n".join(lines) + "\n")
    include = [f"-I{folder}" for folder in (header_folder(), SOURCES)]
    return subprocess.run(
        [*compiler(), "-std=gnu11", *include, "-c", str(source), "-o", str(tmp_path / "check.o")],
        capture_output=True,
        text=True,
        check=False,
    )


def test_structs_and_codes_are_laid_out_as_in_nvidias_header(tmp_path: Path) -> None:
    assertions = [
        f'_Static_assert(sizeof({ours}) == sizeof({theirs}), "size of {ours}");'
        for ours, (theirs, _) in STRUCTS.items()
    ]
    assertions += [
        f'_Static_assert(offsetof({ours}, {our}) == offsetof({theirs}, {their}), "{ours}.{our}");'
        for ours, (theirs, fields) in STRUCTS.items()
        for our, their in fields.items()
    ]
    assertions += [
        f'_Static_assert((int){ours} == (int){theirs}, "{ours}");' for ours, theirs in CODES.items()
    ]
    result = check(tmp_path, assertions)
    assert result.returncode == 0, result.stderr


def test_a_wrong_layout_would_be_found(tmp_path: Path) -> None:
    wrong = '_Static_assert(sizeof(stub_memory) == sizeof(nvmlMemory_v2_t), "found");'
    result = check(tmp_path, [wrong])
    assert result.returncode != 0
    assert "found" in result.stderr


def test_every_function_of_the_stand_in_is_one_of_nvidias(tmp_path: Path) -> None:
    stand_in = (SOURCES / "nvml_stub.c").read_text()
    names = set(re.findall(r"^API [\w \*]*?(nvml\w+)\(", stand_in, re.MULTILINE))
    assert len(names) > 25
    result = check(tmp_path, [f"void *p_{name} = (void *)&{name};" for name in sorted(names)])
    assert result.returncode == 0, result.stderr


def test_without_a_compiler_the_message_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(NoCompiler, match="pip install ziglang"):
        build(tmp_path / "libraries")
