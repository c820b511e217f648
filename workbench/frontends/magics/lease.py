"""`%gpu-lease` and `%gpu-release`: a GPU for a kernel that runs already."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from workbench.client import Background, UserError
from workbench.client import kernel_lease as leases
from workbench.client.environment import own_environment
from workbench.client.kernel_lease import KernelLease, Wanted
from workbench.frontends.magics.magics import plain_errors
from workbench.frontends.magics.options import help_text, read_arguments
from workbench.frontends.magics.tables import Shown
from workbench.protocol.environment import MARK, SIMULATED, job_of_mark
from workbench.protocol.quantities import check_count, format_seconds, parse_bytes, parse_seconds

CUDA_DEVICE: Final = "/dev/nvidia-uvm"
"""What cuInit opens and holds; reading NVML does not. Source: the driver's own device files."""

CLEAN_UP_S: Final = 5.0
"""How long an interrupted request may take to leave the queue; it is short-lived all the same."""

_ARGUMENTS: Final = (
    argument("gpus", type=int, nargs="?", default=1, metavar="N", help="whole GPUs; default: 1"),
    argument("--time", metavar="TIME", help="stop this kernel after so long, e.g. 2h"),
    argument("--gpu-memory", metavar="SIZE", help="memory that each GPU must have, e.g. 6GiB"),
    argument("--wait", metavar="TIME", default="20s", help="wait so long for it; default: 20s"),
)

_Result = TypeVar("_Result")


def lease_arguments(function: Any) -> Any:
    """Decorate the magic with its options, which gives `--help` and Tab completion."""
    for one in reversed(_ARGUMENTS):
        function = one(function)
    return magic_arguments("gpu-lease")(function)


@magics_class
class LeaseMagics(Magics):
    """A lease for the kernel itself, beside those of its scheduled cells."""

    @lease_arguments
    @line_magic("gpu-lease")
    @plain_errors
    def gpu_lease(self, line: str) -> Shown:
        """Lease GPUs for this kernel, from now until it ends: `%gpu-lease 1 --time 2h`."""
        if {"--help", "-h"} & set(line.split()):
            return Shown(help_text(self.gpu_lease))
        wanted = _wanted(read_arguments(self.gpu_lease, line))
        held = os.environ.get(MARK)
        if held:
            raise UserError(
                f"this kernel holds {_gpus(os.environ)} already", next_step="%gpu-release first"
            )
        why = cuda_user(open_files())
        if why is not None:
            raise UserError(
                f"{why}, so this kernel cannot be given a GPU any more",
                next_step="Restart the kernel and run %gpu-lease before anything uses CUDA",
            )
        lease = self._run(_lease(wanted))
        os.environ.update(lease.environment)
        return Shown(held_text(_gpus(os.environ), wanted.time_limit_s))

    @line_magic("gpu-release")
    @plain_errors
    def gpu_release(self, line: str) -> Shown:
        """Give this kernel's GPUs back: `%gpu-release`."""
        if line.strip():
            raise UserError(f"%gpu-release takes no arguments, got {line.strip()!r}")
        held = os.environ.get(MARK)
        if not held:
            raise UserError("this kernel holds no lease", next_step="%gpu-lease 1 takes one")
        why = cuda_user(open_files())
        if why is not None:
            end = "Shut the kernel down" if _is_started_with(held) else "Restart the kernel"
            raise UserError(
                f"{why}: this kernel's memory keeps the GPU busy until the kernel ends",
                next_step=f"{end}; that gives the GPU back",
            )
        gpus = _gpus(os.environ)
        self._run(leases.give_back(job_of_mark(held)))
        own = own_environment(os.environ)
        for name in set(os.environ) - set(own):
            del os.environ[name]
        os.environ.update(own)
        return Shown(f"{gpus} given back")

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        background = Background()
        try:
            return background.run(work)
        except KeyboardInterrupt:
            background.run(_others_ended())  # It takes its request out of the queue.
            raise
        finally:
            background.close()


def held_text(gpus: str, time_limit_s: float | None) -> str:
    """Return what a kernel holds from now on, and what will end that."""
    text = f"this kernel holds {gpus} until it ends or %gpu-release"
    if time_limit_s is None:
        return text
    return f"{text}; after {format_seconds(time_limit_s)} it is stopped (--time)"


def cuda_user(files: Iterable[str]) -> str | None:
    """Return what says that this process has initialised CUDA; None where nothing does.

    Args:
        files: What the process has open.
    """
    torch = sys.modules.get("torch")  # Never imported here.
    if torch is not None and torch.cuda.is_initialized():
        return "torch has initialised CUDA"
    if any(file.startswith(CUDA_DEVICE) for file in files):
        return f"something has initialised CUDA ({CUDA_DEVICE} is open)"
    return None


def open_files() -> list[str]:
    """Return the paths of this process's open files."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(link.readlink()))
        except OSError:
            continue  # Closed while we looked.
    return found


async def _lease(wanted: Wanted) -> KernelLease:
    lease = await leases.take(wanted, os.environ)
    await leases.started(lease.job, os.getpid())
    return lease


async def _others_ended() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=CLEAN_UP_S)


def _wanted(given: argparse.Namespace) -> Wanted:
    check_count(given.gpus, "%gpu-lease", least=1, what="whole GPUs")
    return Wanted(
        name=f"%gpu-lease of pid {os.getpid()}",
        notebook=os.environ.get("JPY_SESSION_NAME"),
        gpus=given.gpus,
        gpu_memory_bytes=(
            parse_bytes(given.gpu_memory, "--gpu-memory") if given.gpu_memory else None
        ),
        time_limit_s=parse_seconds(given.time, "--time") if given.time else None,
        wait_s=parse_seconds(given.wait, "--wait"),
        keeps_ticket=False,
    )


def _is_started_with(mark: str) -> bool:
    """Whether Jupyter started this kernel with its lease, which a restart then keeps."""
    return f"{MARK}={mark}".encode() in Path("/proc/self/environ").read_bytes().split(b"\0")


def _gpus(env: os._Environ[str]) -> str:
    simulated = env.get(SIMULATED)
    if simulated:
        return f"{simulated} (SIMULATED: runs on the CPU)"
    return env.get("CUDA_VISIBLE_DEVICES") or "no GPU"
