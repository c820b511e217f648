"""Kernels inside leases, in a lab with scripted GPUs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client import KernelManager
from jupyter_client.kernelspec import get_kernel_spec

from tests.integration.lab import Lab, Notebook, lab
from tests.stand_ins.world import StubWorld
from workbench.client import ControllerClient
from workbench.protocol.messages import JobView, Status

LIMIT_S = 30.0
INSTALLED = "gpu-lease"


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait until `condition` returns something true."""
    deadline = time.monotonic() + LIMIT_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} never came"
        time.sleep(0.05)
    return value


class LeasedKernel(Notebook):
    """A kernel of a kernelspec; its provisioner runs here, as it does in a Jupyter server."""

    def __init__(self, kernel_name: str, env: dict[str, str], cwd: Path) -> None:
        self.manager = KernelManager(kernel_name=kernel_name)
        self.manager.start_kernel(env=env, cwd=str(cwd))
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=30)

    @property
    def pid(self) -> int:
        pid: int = self.manager.provisioner.process.pid
        return pid

    def environment(self) -> dict[str, str]:
        """The kernel's own `os.environ`."""
        run = self.run("import json, os; print(json.dumps(dict(os.environ)))")
        assert run.ok, run.error
        found: dict[str, str] = json.loads(run.stdout)
        return found

    def shut_down(self) -> None:
        """Shut it down as a user does."""
        self.client.stop_channels()
        self.manager.shutdown_kernel()

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            super().close()


class LeasedLab:
    """A lab on whose scripted GPUs kernels are started from this very process."""

    def __init__(self, one: Lab) -> None:
        self.lab = one
        self._kernels: list[LeasedKernel] = []

    def start(self, kernel_name: str = INSTALLED, *, notebook: str | None = None) -> LeasedKernel:
        """Start a kernel as a Jupyter server does for `notebook`."""
        env = dict(self.lab.env)
        if notebook is not None:
            env["JPY_SESSION_NAME"] = notebook
        kernel = LeasedKernel(kernel_name, env, self.lab.work)
        self._kernels.append(kernel)
        return kernel

    def spec(self, name: str, *, python: Path | None = None, **config: Any) -> str:
        """Make a kernelspec like the installed one with other settings; return its name."""
        spec = get_kernel_spec(INSTALLED).to_dict()
        if python is not None:
            spec["argv"][0] = str(python)
        spec["metadata"]["kernel_provisioner"]["config"].update(config)
        folder = self.lab.root / "jupyter/kernels" / name
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps(spec))
        return name

    def status(self) -> Status:
        """The lab as its controller shows it."""

        async def ask() -> Status:
            controller = await ControllerClient.connect()
            try:
                return await controller.status()
            finally:
                await controller.close()

        return asyncio.run(ask())

    def kernel_jobs(self) -> list[JobView]:
        """Live kernel jobs."""
        return [view for view in self.status().jobs if view.kind == "kernel"]

    def running(self) -> JobView:
        """The one kernel job, once its kernel runs."""

        def find() -> JobView | None:
            (view,) = self.kernel_jobs()
            return view if view.state == "running" else None

        view: JobView = until(find, "a running kernel")
        return view

    def freed(self, job: str) -> JobView:
        """Wait until the job has ended and return its view."""
        view: JobView = until(
            lambda: next((one for one in self.status().ended if one.id == job), None),
            f"the end of {job}",
        )
        return view

    def close(self) -> None:
        for kernel in self._kernels:
            kernel.close()


@contextlib.contextmanager
def leased_lab(world: StubWorld) -> Iterator[LeasedLab]:
    """A lab whose places are also those of this process, as a Jupyter server's would be."""
    with (
        tempfile.TemporaryDirectory(prefix="wb") as root,
        pytest.MonkeyPatch.context() as patch,
        lab(Path(root)) as one,
    ):
        one.env.update(world.env)
        one.env["JUPYTER_PATH"] = str(one.root / "jupyter")
        for name in list(os.environ):
            if name not in one.env:
                patch.delenv(name)
        for name, value in one.env.items():
            patch.setenv(name, value)
        leased = LeasedLab(one)
        try:
            yield leased
        finally:
            leased.close()
