"""Compile the stand-ins with whatever C compiler there is."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SOURCES = Path(__file__).parent
LIBRARIES = {"nvml_stub.c": "libnvidia-ml.so.1", "cuda_stub.c": "libcuda.so.1"}


class NoCompiler(RuntimeError):
    """There is no C compiler; the message names the one command that gives one."""


def compiler() -> list[str]:
    """The command line of a C compiler: gcc or cc of the system, else the package ziglang.

    Raises:
        NoCompiler: There is none of them.
    """
    for name in ("gcc", "cc"):
        if path := shutil.which(name):
            return [path]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    msg = f"no C compiler for the GPU stand-ins; run: {sys.executable} -m pip install ziglang"
    raise NoCompiler(msg)


def build(folder: Path, *, omit: Sequence[str] = ()) -> Path:
    """Build both libraries into a folder and return it.

    Args:
        folder: Created where it does not exist; what it holds is kept.
        omit: NVML functions to leave out, as in an older driver. Only those that `nvml_stub.c`
            guards with `OMIT_…` can be left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for source, library in LIBRARIES.items():
        target = folder / library
        if not target.exists():
            subprocess.run(
                [
                    *compiler(),
                    *("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"),
                    *("-shared", "-fPIC", "-fvisibility=hidden", "-pthread"),
                    f"-Wl,-soname,{library}",
                    *(f"-DOMIT_{name}" for name in omit),
                    *("-o", str(target), str(SOURCES / source)),
                ],
                check=True,
            )
    return folder
